function [y, place] = max_pool_indices(x, kernel, stride, pads, dilation, ceil_mode, by_column)
% The largest element of each window, and where it lies in the whole tensor, counted from 0.
rank = numel(kernel);
own = [size(x), ones(1, rank + 2 - ndims(x))];
if by_column
    order = [rank:-1:1, rank + 1, rank + 2];
    from = reshape(0:numel(x) - 1, own(order));
    from = permute(from, order);
else
    from = reshape(0:numel(x) - 1, own);
end
[x, counts, pads] = ops.pool_window(x, kernel, stride, pads, dilation, ceil_mode, ops.lowest(x));
from = ops.pool_window(from, kernel, stride, pads, dilation, ceil_mode, -1);
for k = 1:prod(kernel)
    at = ops.tap(k, kernel, stride, dilation, counts);
    part = x(at{:});
    where = from(at{:});
    if k == 1
        y = part;
        place = where;
    else
        better = part > y | (place < 0 & where >= 0) | (isnan(part) & ~isnan(y));
        y(better) = part(better);
        place(better) = where(better);
    end
end
place = int64(place);
end
