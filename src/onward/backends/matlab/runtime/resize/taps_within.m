function [numbers, weights] = taps_within(numbers, weights, n, exclude_outside)
% Elements outside of a dimension are those at its ends, or have no weight; those given count from 0.
if exclude_outside
    weights(numbers < 0 | numbers >= n) = 0;
    weights = weights ./ sum(weights, 2);
end
numbers = min(max(double(numbers), 0), n - 1) + 1;
end
