function y = pad_by_number(x, own, before, after, value)
% An array of a size with a border of one value; where it is negative, elements are cut off.
rank = numel(before);
shape = own;
shape(1:rank) = max(own(1:rank) + before + after, 0);
if iscell(x)
    if ~iscell(value)
        value = {''};
    end
    y = repmat(value, shape);
elseif islogical(x)
    y = repmat(logical(value), shape);
elseif isscalar(value) && value == 0
    y = zeros(shape, class(x));
else
    y = repmat(cast(value, class(x)), shape);
end
from = cell(1, numel(own));
to = from;
for dim = 1:numel(own)
    first = 0;
    if dim <= rank
        first = before(dim);
    end
    kept = max(1, 1 - first):min(own(dim), shape(dim) - first);
    from{dim} = kept;
    to{dim} = kept + first;
end
y(to{:}) = x(from{:});
end
