function y = round_bfloat16(x)
% Rounded to the numbers that bfloat16 holds, in single precision.
y = ops.round_float(x, 7, -126);
end
