function y = shrink(x, limit, bias)
% Values moved to zero by the bias; those within the limit are zero.
y = zeros(size(x), class(x));
low = x < -limit;
high = x > limit;
y(low) = x(low) + bias;
y(high) = x(high) - bias;
end
