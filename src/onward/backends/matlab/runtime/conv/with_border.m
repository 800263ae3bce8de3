function y = with_border(x, pads, shape)
% Images of a size with zeros around them, or without their border where that is negative.
rank = numel(pads) / 2;
if rank ~= 2 || any(pads < 0)
    y = ops.pad(x, [pads(1:rank), 0, 0], [pads(rank + 1:end), 0, 0], 'constant', 0);
    return
end
y = zeros([shape(1:2) + pads(1:2) + pads(3:4), shape(3:4)], class(x));
y(pads(1) + (1:shape(1)), pads(2) + (1:shape(2)), :, :) = x;
end
