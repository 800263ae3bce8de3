function y = softmax(x, dim)
% Exponentials divided by their sum along a dimension, which is added up in double precision.
y = exp(x - max(x, [], dim));
y = y ./ sum(y, dim, 'double');
end
