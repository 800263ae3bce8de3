function y = squeeze_all(x, rank)
% Without the dimensions of 1; so many are left.
shape = size(x);
shape = shape(shape ~= 1);
if numel(shape) ~= rank
    error('onward:size', '%d dimensions are not 1, where %d were expected', numel(shape), rank);
end
y = reshape(x, [shape, ones(1, 2 - numel(shape))]);
end
