function y = item(x, dim, k, rank)
% The k-th part of an array along a dimension, without that dimension.
at = repmat({':'}, 1, max(rank, 2));
at{dim} = k;
shape = [size(x), ones(1, rank - ndims(x))];
shape = shape(1:rank);
shape(dim) = [];
y = reshape(x(at{:}), [shape, ones(1, 2 - numel(shape))]);
end
