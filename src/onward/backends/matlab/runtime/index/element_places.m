function place = element_places(shape, indices, dim, rank)
% The linear indices of elements of an array of a shape: where the indices are, but for one dimension.
shape = [shape, ones(1, rank - numel(shape))];
own = [size(indices), ones(1, rank - ndims(indices))];
steps = [1, cumprod(shape(1:end - 1))];
place = (ops.from_the_front(indices, shape(dim)) - 1) * steps(dim) + 1;
for d = setdiff(1:rank, dim)
    place = place + reshape((0:own(d) - 1) * steps(d), [ones(1, d - 1), own(d), 1]);
end
end
