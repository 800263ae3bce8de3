function y = float_modulo(a, b)
% What is left of a divided by b, with the sign of b.
y = ops.float_remainder(a, b);
d = b + zeros(size(y), class(y));
opposite = y ~= 0 & (y < 0) ~= (d < 0);
y(opposite) = y(opposite) + d(opposite);
end
