function y = lp_pool(x, kernel, stride, pads, dilation, ceil_mode, p)
% The p-norm of each window.
[x, counts] = ops.pool_window(x, kernel, stride, pads, dilation, ceil_mode, 0);
y = 0;
for k = 1:prod(kernel)
    at = ops.tap(k, kernel, stride, dilation, counts);
    y = y + abs(x(at{:})) .^ p;
end
y = y .^ (1 / p);
end
