function parts = split_each(x, dim)
% The slices of an array along a dimension, which they keep.
at = repmat({':'}, 1, max(ndims(x), dim));
parts = cell(1, size(x, dim));
for k = 1:numel(parts)
    at{dim} = k;
    parts{k} = x(at{:});
end
end
