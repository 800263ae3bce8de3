function y = pad(x, before, after, mode, value)
% An array with a border; where it is negative, elements are cut off. Dimensions are MATLAB's.
rank = numel(before);
own = [size(x), ones(1, rank - ndims(x))];
if strcmp(mode, 'constant')
    y = ops.pad_by_number(x, own, before, after, value);
    return
end
at = cell(1, max(rank, 2));
at(:) = {':'};
for dim = 1:rank
    first = 1 + max(-before(dim), 0);
    n = own(dim) - max(-after(dim), 0) - first + 1;
    place = 1 - max(before(dim), 0):n + max(after(dim), 0);
    switch mode
        case 'edge'
            place = min(max(place, 1), n);
        case 'reflect'
            period = max(2 * (n - 1), 1);
            place = mod(place - 1, period);
            place = 1 + min(place, period - place) * (n > 1);
        otherwise
            place = mod(place - 1, n) + 1;
    end
    at{dim} = place + first - 1;
end
y = x(at{:});
end
