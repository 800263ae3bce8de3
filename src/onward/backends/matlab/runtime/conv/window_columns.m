function y = window_columns(x, n, kernel, stride, dilation, counts, shape)
% What the windows of the n-th image meet: a row for each window, a column for each element of a window and channel.
rank = numel(kernel);
channels = shape(rank + 1);
places = prod(counts);
taps = prod(kernel);
if taps == 1 && all(stride == 1)
    first = (n - 1) * places * channels;
    if shape(rank + 2) > 1
        x = x(first + 1:first + places * channels);
    end
    y = reshape(x, places, channels);
    return
end
y = zeros([counts, taps, channels], class(x));
k = 0;
if rank == 2
    for row = 1:dilation(2):1 + dilation(2) * (kernel(2) - 1)
        rows = row:stride(2):row + stride(2) * (counts(2) - 1);
        for column = 1:dilation(1):1 + dilation(1) * (kernel(1) - 1)
            k = k + 1;
            y(:, :, k, :) = x(column:stride(1):column + stride(1) * (counts(1) - 1), rows, :, n);
        end
    end
else
    y = reshape(y, [places, taps, channels]);
    for k = 1:taps
        at = ops.tap(k, kernel, stride, dilation, counts);
        at{rank + 2} = n;
        y(:, k, :) = reshape(x(at{:}), [places, 1, channels]);
    end
end
y = reshape(y, [places, taps * channels]);
end
