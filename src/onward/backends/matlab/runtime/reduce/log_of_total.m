function y = log_of_total(x, dims)
% The logarithm of the sum along dimensions.
y = double(x);
for dim = dims
    y = sum(y, dim);
end
y = ops.real_or_nan(log(y));
if isinteger(x)
    y = ops.to_integer(y, class(x));
else
    y = cast(y, class(x));
end
end
