function y = conv(x, w, b, stride, pads, dilation, groups)
% A convolution: im2col and one product for each image; x is W x H x C x N, w is W x H x C x outputs.
rank = numel(stride);
if nargin < 5
    pads = zeros(1, 2 * rank);
end
if nargin < 6
    dilation = ones(1, rank);
end
if nargin < 7
    groups = 1;
end
full = @(a) [size(a), ones(1, rank + 2 - ndims(a))];
shape = full(x);
kernel = full(w);
outputs = kernel(rank + 2);
inputs = kernel(rank + 1);
kernel = kernel(1:rank);
pads = ops.window_pads(pads, shape(1:rank), kernel, stride, dilation);
if any(pads)
    x = ops.pad(x, [pads(1:rank), 0, 0], [pads(rank + 1:end), 0, 0], 'constant', 0);
    shape = full(x);
end
counts = max(floor((shape(1:rank) - (kernel - 1) .* dilation - 1) ./ stride) + 1, 0);
images = shape(rank + 2);
places = prod(counts);
taps = prod(kernel);
if groups > 1 && inputs == 1
    y = ops.conv_depthwise(x, w, stride, dilation, counts, groups);
else
    own = outputs / groups;
    y = zeros([places, outputs, images], class(x));
    w = reshape(w, [taps * inputs, outputs]);
    at = cell(1, taps);
    for k = 1:taps
        at{k} = ops.tap(k, kernel, stride, dilation, counts);
    end
    is_plain = taps == 1 && all(stride == 1);
    for n = 1:images
        for g = 1:groups
            channels = (g - 1) * inputs + (1:inputs);
            if is_plain && groups == 1
                columns = reshape(x((n - 1) * places * inputs + (1:places * inputs)), places, inputs);
            else
                columns = zeros([places, taps, inputs], class(x));
                for k = 1:taps
                    place = at{k};
                    place{rank + 1} = channels;
                    place{rank + 2} = n;
                    columns(:, k, :) = reshape(x(place{:}), [places, 1, inputs]);
                end
                columns = reshape(columns, [places, taps * inputs]);
            end
            filters = (g - 1) * own + (1:own);
            if groups == 1
                y(:, :, n) = columns * w;
            else
                y(:, filters, n) = columns * w(:, filters);
            end
        end
    end
    y = reshape(y, [counts, outputs, images]);
end
if nargin > 2 && ~isempty(b)
    y = y + reshape(b, [ones(1, rank), numel(b)]);
end
end
