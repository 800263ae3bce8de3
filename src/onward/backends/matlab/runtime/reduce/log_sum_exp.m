function y = log_sum_exp(x, dims)
% The logarithm of the sum of exponentials along dimensions.
z = double(x);
most = ops.largest(z, dims);
most(~isfinite(most)) = 0;
y = exp(z - most);
for dim = dims
    y = sum(y, dim);
end
y = log(y) + most;
if isinteger(x)
    y = ops.to_integer(y, class(x));
else
    y = cast(y, class(x));
end
end
