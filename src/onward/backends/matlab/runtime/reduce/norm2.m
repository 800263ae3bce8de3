function y = norm2(x, dims)
% The root of the sum of squares along dimensions.
y = double(x) .^ 2;
for dim = dims
    y = sum(y, dim);
end
y = sqrt(y);
if isinteger(x)
    y = ops.to_integer(y, class(x));
else
    y = cast(y, class(x));
end
end
