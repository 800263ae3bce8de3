function parts = unstack(x, dim, rank)
% The slices of an array along a dimension, which they do not have any more.
parts = ops.split_each(x, dim);
for k = 1:numel(parts)
    parts{k} = ops.without_dims(parts{k}, dim, rank);
end
end
