function y = average_pool(x, kernel, stride, pads, dilation, ceil_mode, count_pads)
% The mean of each window; elements of the border count where that is asked for.
if nargin < 5
    dilation = ones(size(kernel));
end
if nargin < 6
    ceil_mode = false;
end
if nargin < 7
    count_pads = false;
end
rank = numel(kernel);
own = [size(x), ones(1, rank + 2 - ndims(x))];
inside = ones([own(1:rank), 1, 1]);
[x, counts, pads] = ops.pool_window(x, kernel, stride, pads, dilation, ceil_mode, 0);
if count_pads
    inside = ops.pad(inside, [pads(1:rank), 0, 0], [pads(rank + 1:end), 0, 0], 'constant', 1);
    inside = ops.pool_window(inside, kernel, stride, zeros(1, 2 * rank), dilation, ceil_mode, 0);
else
    inside = ops.pool_window(inside, kernel, stride, pads, dilation, ceil_mode, 0);
end
y = 0;
number = 0;
for k = 1:prod(kernel)
    at = ops.tap(k, kernel, stride, dilation, counts);
    y = y + x(at{:});
    number = number + inside(at{:});
end
y = y ./ cast(number, class(x));
end
