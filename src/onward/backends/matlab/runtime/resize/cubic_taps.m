function [numbers, weights] = cubic_taps(at, n, a, exclude_outside)
% The four elements around each place, counted from 1, and their weights.
low = floor(at);
[numbers, weights] = ops.taps_within(low + (-1:2), ops.cubic_filter(at - low - (-1:2), a), n, exclude_outside);
end
