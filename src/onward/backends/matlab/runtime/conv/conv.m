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
shape = [size(x), ones(1, rank + 2 - ndims(x))];
kernel = [size(w), ones(1, rank + 2 - ndims(w))];
outputs = kernel(rank + 2);
inputs = kernel(rank + 1);
kernel = kernel(1:rank);
pads = ops.window_pads(pads, shape(1:rank), kernel, stride, dilation);
if any(pads)
    x = ops.with_border(x, pads, shape);
    shape(1:rank) = shape(1:rank) + pads(1:rank) + pads(rank + 1:end);
end
counts = max(floor((shape(1:rank) - (kernel - 1) .* dilation - 1) ./ stride) + 1, 0);
images = shape(rank + 2);
places = prod(counts);
taps = prod(kernel);
if groups > 1 && inputs == 1
    y = ops.conv_depthwise(x, w, stride, dilation, counts, groups);
else
    own = outputs / groups;
    w = reshape(w, [taps * inputs, outputs]);
    if images > 1 || groups > 1
        y = zeros([places, outputs, images], class(x));
    end
    for n = 1:images
        columns = ops.window_columns(x, n, kernel, stride, dilation, counts, shape);
        if groups > 1
            each = taps * inputs;
            for g = 1:groups
                filters = (g - 1) * own + (1:own);
                y(:, filters, n) = columns(:, (g - 1) * each + (1:each)) * w(:, filters);
            end
        elseif images > 1
            y(:, :, n) = columns * w;
        else
            y = columns * w;
        end
    end
    y = reshape(y, [counts, outputs, images]);
end
if ~isempty(b)
    y = y + reshape(b, [ones(1, rank), numel(b)]);
end
end
