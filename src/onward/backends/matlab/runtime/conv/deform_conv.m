function y = deform_conv(x, w, offset, b, mask, stride, pads, dilation, groups, offset_groups)
% A convolution whose windows take their elements from where offsets say, between pixels.
[width, height, channels, images] = size(x);
[kw, kh, inputs, outputs] = size(w);
[ow, oh, ~, ~] = size(offset);
taps = kw * kh;
places = ow * oh;
offset = reshape(offset, [places, 2, taps, offset_groups, images]);
if isempty(mask)
    mask = ones([places, taps, offset_groups, images], class(x));
else
    mask = reshape(mask, [places, taps, offset_groups, images]);
end
[column, row] = ndgrid((0:ow - 1) * stride(1) - pads(1), (0:oh - 1) * stride(2) - pads(2));
own = outputs / groups;
each = channels / offset_groups;
w = reshape(w, [taps * inputs, outputs]);
y = zeros([places, outputs, images], class(x));
for n = 1:images
    columns = zeros([places, taps, channels], class(x));
    for k = 1:taps
        dx = mod(k - 1, kw) * dilation(1);
        dy = floor((k - 1) / kw) * dilation(2);
        for g = 1:offset_groups
            at_y = row(:) + dy + double(offset(:, 1, k, g, n));
            at_x = column(:) + dx + double(offset(:, 2, k, g, n));
            for c = (g - 1) * each + (1:each)
                columns(:, k, c) = ops.between_pixels(x(:, :, c, n), at_x, at_y) .* mask(:, k, g, n);
            end
        end
    end
    for g = 1:groups
        part = reshape(columns(:, :, (g - 1) * inputs + (1:inputs)), [places, taps * inputs]);
        filters = (g - 1) * own + (1:own);
        y(:, filters, n) = part * w(:, filters);
    end
end
y = reshape(y, [ow, oh, outputs, images]);
if ~isempty(b)
    y = y + reshape(b, [1, 1, numel(b)]);
end
end
