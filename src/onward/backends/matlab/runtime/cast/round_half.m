function y = round_half(x)
% Rounded to the numbers that 16 bits hold (IEEE half precision), in single precision.
y = ops.round_float(x, 10, -14);
y(abs(y) > 65504) = Inf * sign(y(abs(y) > 65504));
end
