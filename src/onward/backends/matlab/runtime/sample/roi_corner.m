function [index, weight] = roi_corner(taps, is_high)
% One of the two elements around each sample, counted from 1, and its weight.
if is_high
    index = taps.high + 1;
    weight = taps.part;
else
    index = taps.low + 1;
    weight = 1 - taps.part;
end
weight(taps.beside) = 0;
end
