function y = conv_transpose(x, w, b, stride, pads, dilation, groups, more, wanted, same)
% A transposed convolution: what each element spreads, summed up; then the border is cut off.
rank = numel(stride);
full = @(a) [size(a), ones(1, rank + 2 - ndims(a))];
shape = full(x);
kernel = full(w);
own = kernel(rank + 1);
inputs = kernel(rank + 2) / groups;
kernel = kernel(1:rank);
images = shape(rank + 2);
whole = (shape(1:rank) - 1) .* stride + (kernel - 1) .* dilation + 1;
before = pads(1:rank);
after = pads(rank + 1:end);
if ~isempty(wanted)
    cut = max(whole + more - wanted, 0);
    small = floor(cut / 2);
    before = cut - small;
    if strcmp(same, 'SAME_UPPER')
        before = small;
    end
    after = whole + more - wanted - before;
elseif ~isempty(same)
    cut = max((kernel - 1) .* dilation + 1 + more - stride, 0);
    before = cut - floor(cut / 2);
    if strcmp(same, 'SAME_UPPER')
        before = floor(cut / 2);
    end
    after = cut - before;
end
taps = prod(kernel);
places = prod(shape(1:rank));
y = zeros([whole, own * groups, images], class(x));
x = reshape(x, [places, inputs, groups, images]);
w = reshape(w, [taps, own, inputs, groups]);
for k = 1:taps
    at = ops.tap(k, kernel, stride, dilation, shape(1:rank));
    for g = 1:groups
        at{rank + 1} = (g - 1) * own + (1:own);
        matrix = reshape(w(k, :, :, g), own, inputs).';
        for n = 1:images
            at{rank + 2} = n;
            part = reshape(reshape(x(:, :, g, n), places, inputs) * matrix, [shape(1:rank), own]);
            y(at{:}) = y(at{:}) + part;
        end
    end
end
y = ops.pad(y, [-before, 0, 0], [more - after, 0, 0], 'constant', 0);
if ~isempty(b)
    y = y + reshape(b, [ones(1, rank), numel(b)]);
end
end
