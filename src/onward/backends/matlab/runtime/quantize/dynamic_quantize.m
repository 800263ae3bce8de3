function [y, scale, zero_point] = dynamic_quantize(x)
% Numbers as uint8 over the range of their values, with the scale and the zero point.
low = min([x(:); 0]);
high = max([x(:); 0]);
scale = (high - low) / 255;
if high == low
    scale = cast(1, class(x));
end
zero_point = ops.round_even(min(max(-low / scale, 0), 255));
y = uint8(ops.round_even(x / scale) + zero_point);
zero_point = uint8(zero_point);
end
