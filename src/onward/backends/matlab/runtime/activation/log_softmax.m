function y = log_softmax(x, dim)
% The logarithm of softmax along a dimension.
y = x - max(x, [], dim);
y = y - log(sum(exp(y), dim, 'double'));
end
