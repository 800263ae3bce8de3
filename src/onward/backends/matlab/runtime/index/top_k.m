function [y, place] = top_k(x, k, dim, largest)
% The k largest or smallest elements along a dimension, in order, and where they are, from 0.
if largest
    [y, place] = sort(x, dim, 'descend');
else
    [y, place] = sort(x, dim, 'ascend');
end
at = repmat({':'}, 1, max(ndims(x), dim));
at{dim} = 1:double(k);
y = y(at{:});
place = int64(place(at{:})) - 1;
end
