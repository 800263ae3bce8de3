function taps = roi_samples(start, step, cells, ratio, n)
% Samples of all cells of a region along a dimension: the two elements around each, and the weight of the second.
count = ratio;
if ratio <= 0
    count = max(ceil(double(step)), 0);
end
inside = ((0:count - 1)' + 0.5) / max(count, 1);
at = start + ((0:cells - 1) + inside) * step;
at = at(:);
taps.beside = at < -1 | at > n;
at = min(max(at, 0), n - 1);
taps.low = floor(at);
taps.high = min(taps.low + 1, n - 1);
taps.part = at - taps.low;
end
