function y = gather(x, indices, dim, rank, rank_of_indices)
% Parts of an array along a dimension, by indices of any shape. Ranks are those of the file.
shape = [size(x), ones(1, rank - ndims(x))];
own = [size(indices), ones(1, rank_of_indices - ndims(indices))];
at = repmat({':'}, 1, max(rank, 2));
at{dim} = ops.from_the_front(indices(:), shape(dim));
shape = [shape(1:dim - 1), own(1:rank_of_indices), shape(dim + 1:rank)];
y = reshape(x(at{:}), [shape, ones(1, 2 - numel(shape))]);
end
