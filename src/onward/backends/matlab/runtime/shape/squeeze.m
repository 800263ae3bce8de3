function y = squeeze(x, axes, rank)
% Without these axes of the file, of an array that has so many.
dims = rank - mod(axes(:)', rank);
shape = size(x);
shape = [shape, ones(1, rank - numel(shape))];
shape(dims) = [];
y = reshape(x, [shape, ones(1, 2 - numel(shape))]);
end
