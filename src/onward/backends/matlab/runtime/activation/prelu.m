function y = prelu(x, slope)
% x, or x times a slope where it is negative.
if isinteger(x)
    y = ops.multiply_integers(x, slope);
else
    y = x .* slope;
end
high = ~(x < 0);
y(high) = x(high);
end
