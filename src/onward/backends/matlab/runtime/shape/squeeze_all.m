function y = squeeze_all(x, rank)
% Without the dimensions of 1; so many have to be left, if that is said.
shape = size(x);
shape = shape(shape ~= 1);
if nargin > 1 && numel(shape) ~= rank
    error('onward:size', '%d dimensions are not 1, where %d were expected', numel(shape), rank);
end
y = reshape(x, [shape, ones(1, 2 - numel(shape))]);
end
