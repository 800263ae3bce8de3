function y = flatten(x, count)
% A matrix of the first dimensions, so many, and of the others.
shape = size(x);
shape = [shape, ones(1, count - numel(shape))];
y = reshape(x, prod(shape(1:count)), prod(shape(count + 1:end)));
end
