function [x, counts, pads, own] = pool_window(x, kernel, stride, pads, dilation, ceil_mode, value)
% An image with its border for a pool, and how many windows there are along each dimension.
rank = numel(kernel);
own = [size(x), ones(1, rank + 2 - ndims(x))];
own = own(1:rank);
span = (kernel - 1) .* dilation + 1;
if ischar(pads)
    total = (ceil(own ./ stride) - 1) .* stride + kernel - own;
    if strcmp(pads, 'same_upper')
        before = fix(total / 2);
    else
        before = fix((total + 1) / 2);
    end
    pads = [before, total - before];
end
free = own + pads(1:rank) + pads(rank + 1:end) - span;
counts = floor(free ./ stride) + 1;
if ceil_mode
    counts = ceil(free ./ stride) + 1;
    outside = (counts - 1) .* stride >= own + pads(1:rank);
    counts(outside) = counts(outside) - 1;
end
after = (counts - 1) .* stride + span - own - pads(1:rank);
x = ops.pad(x, [pads(1:rank), 0, 0], [after, 0, 0], 'constant', value);
end
