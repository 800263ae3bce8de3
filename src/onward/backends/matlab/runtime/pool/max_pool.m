function y = max_pool(x, kernel, stride, pads, dilation, ceil_mode)
% The largest element of each window.
[x, counts] = ops.pool_window(x, kernel, stride, pads, dilation, ceil_mode, ops.lowest(x));
for k = 1:prod(kernel)
    at = ops.tap(k, kernel, stride, dilation, counts);
    part = x(at{:});
    if k == 1
        y = part;
    else
        y = max(y, part);
    end
end
if isfloat(x) && any(isnan(x(:)))
    missing = false(size(y));
    for k = 1:prod(kernel)
        at = ops.tap(k, kernel, stride, dilation, counts);
        missing = missing | isnan(x(at{:}));
    end
    y(missing) = NaN;
end
end
