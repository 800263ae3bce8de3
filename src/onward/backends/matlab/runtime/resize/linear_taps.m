function [numbers, weights] = linear_taps(at, n)
% The two elements between which each place lies, counted from 1, and their weights.
at = min(max(at, 0), n - 1);
low = floor(at);
part = at - low;
part(low == n - 1) = 0.5;
numbers = min(double(low) + [1, 2], n);
weights = [1 - part, part];
end
