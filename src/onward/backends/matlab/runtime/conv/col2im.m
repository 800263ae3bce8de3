function y = col2im(x, image, block, stride, pads, dilation)
% Blocks put back where they were in an image, with what overlaps summed up.
image = double(image(:)');
block = double(block(:)');
image = image(end:-1:1);
block = block(end:-1:1);
rank = numel(image);
whole = image + pads(1:rank) + pads(rank + 1:end);
counts = floor((whole - (block - 1) .* dilation - 1) ./ stride) + 1;
taps = prod(block);
channels = size(x, 2) / taps;
images = size(x, 3);
x = reshape(x, [prod(counts), taps, channels, images]);
y = zeros([whole, channels, images], class(x));
for k = 1:taps
    at = ops.tap(k, block, stride, dilation, counts);
    y(at{:}) = y(at{:}) + reshape(x(:, k, :, :), [counts, channels, images]);
end
y = ops.pad(y, [-pads(1:rank), 0, 0], [-pads(rank + 1:end), 0, 0], 'constant', 0);
end
