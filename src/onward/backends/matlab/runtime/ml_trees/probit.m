function y = probit(x)
% The quantile of the normal distribution, in the approximation that ONNX Runtime computes.
y = 2 * x - 1;
z = ops.real_or_nan(log((1 - y) .* (1 + y)));
v = 2 / (pi * 0.147) + 0.5 * z;
root = ops.real_or_nan(sqrt(ops.real_or_nan(sqrt(v .* v - z / 0.147)) - v));
root(y < 0) = -root(y < 0);
y = sqrt(2) * root;
end
