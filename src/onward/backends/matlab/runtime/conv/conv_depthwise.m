function y = conv_depthwise(x, w, stride, dilation, counts, groups)
% A convolution of each channel by itself, with one filter or several: a sum over the elements of a window.
rank = numel(stride);
shape = [size(x), ones(1, rank + 2 - ndims(x))];
kernel = [size(w), ones(1, rank + 2 - ndims(w))];
each = kernel(rank + 2) / groups;
images = shape(rank + 2);
shape = shape(1:rank);
taps = prod(kernel(1:rank));
w = reshape(w, [taps, each, groups]);
moves = all(stride == 1) && all(counts > 0);
if moves  % an element of all windows is the whole image, moved: no part of it has to be picked out
    steps = [1, cumprod(shape(1:rank - 1))];
    first = 0;
    for dim = 1:rank
        first = reshape(first, [], 1) + (0:kernel(dim) - 1) * dilation(dim) * steps(dim);
    end
    x = reshape(x, [prod(shape), 1, groups, images]);
    last = sum((counts - 1) .* steps) + 1;
end
for k = 1:taps
    if moves
        part = x(first(k) + 1:first(k) + last, 1, :, :) .* w(k, :, :);
    else
        at = ops.tap(k, kernel(1:rank), stride, dilation, counts);
        part = reshape(x(at{:}), [prod(counts), 1, groups, images]) .* w(k, :, :);
    end
    if k == 1
        y = part;
    else
        y = y + part;
    end
end
if moves
    shape(rank) = counts(rank);
    y = cat(1, y, zeros([prod(shape) - last, each, groups, images], class(y)));
    y = reshape(y, [shape, each * groups, images]);
    within = arrayfun(@(count) 1:count, counts, 'UniformOutput', false);
    y = y(within{:}, :, :);
else
    y = reshape(y, [counts, each * groups, images]);
end
end
