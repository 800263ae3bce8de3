function y = softmax(x, dim)
% Exponentials divided by their sum along a dimension.
y = exp(x - max(x, [], dim));
y = y ./ sum(y, dim);
end
