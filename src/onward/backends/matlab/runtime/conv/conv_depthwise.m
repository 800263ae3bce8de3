function y = conv_depthwise(x, w, stride, dilation, counts, groups)
% A convolution of each channel by itself, with one filter or several.
rank = numel(stride);
kernel = [size(w), ones(1, rank + 2 - ndims(w))];
each = kernel(rank + 2) / groups;
images = size(x, rank + 2);
taps = prod(kernel(1:rank));
w = reshape(w, [taps, 1, each, groups]);
y = zeros([prod(counts), each, groups, images], class(x));
for k = 1:taps
    at = ops.tap(k, kernel(1:rank), stride, dilation, counts);
    part = reshape(x(at{:}), [prod(counts), 1, groups, images]);
    y = y + part .* reshape(w(k, 1, :, :), [1, each, groups]);
end
y = reshape(y, [counts, each * groups, images]);
end
