function [numbers, weights] = antialias_taps(at, n, scale, mode, a, exclude_outside)
% The elements that shrink into each place, counted from 1, and their weights.
is_linear = strcmp(mode, 'linear');
reach = (2 - is_linear) * max(1 / scale, 1);
centre = at + 0.5;
first = floor(centre - single(reach) + 0.5);
last = floor(centre + single(reach) + 0.5);
numbers = first + (0:2 * ceil(reach) + 1);
distance = (numbers - centre + 0.5) * single(min(scale, 1));
if is_linear
    weights = max(1 - abs(distance), 0);
else
    weights = ops.cubic_filter(distance, a);
end
weights(numbers >= last) = 0;
[numbers, weights] = ops.taps_within(numbers, weights, n, exclude_outside);
weights = weights ./ sum(weights, 2);
end
