function y = without_dims(x, dims, rank)
% An array without dimensions of 1, of which it has so many in the file.
shape = [size(x), ones(1, rank - ndims(x))];
shape = shape(1:rank);
shape(dims) = [];
y = reshape(x, [shape, ones(1, 2 - numel(shape))]);
end
