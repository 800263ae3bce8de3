function [y, first, inverse, counts] = unique_parts(x, dim, is_sorted)
% The different elements, or parts along a dimension; where each comes first, from 0, which one each is, and how often.
if dim == 0
    rows = x(:);
    rank = 1;
else
    rank = max(ndims(x), dim);
    order = [dim, setdiff(1:rank, dim)];
    shape = [size(x), ones(1, rank - ndims(x))];
    rows = reshape(permute(x, order), shape(dim), []);
    if iscell(rows)  % texts by their places in order: only numbers have rows
        [~, ~, number] = unique(rows(:));
        rows = reshape(number, size(rows));
    end
end
if size(rows, 2) == 1
    [~, first, inverse] = unique(rows, 'first');
else
    [~, first, inverse] = unique(rows, 'rows', 'first');
end
first = first(:);
inverse = inverse(:);
if ~is_sorted
    [first, order_of] = sort(first);
    place = zeros(numel(first), 1);
    place(order_of) = 1:numel(first);
    inverse = reshape(place(inverse), [], 1);
end
if dim == 0
    y = rows(first);
    y = reshape(y, [], 1);
else
    at = repmat({':'}, 1, rank);
    at{dim} = first;
    y = x(at{:});
end
counts = int64(accumarray(inverse, 1, [numel(first), 1]));
first = int64(first) - 1;
inverse = int64(inverse) - 1;
end
