function y = max_pool(x, kernel, stride, pads, dilation, ceil_mode)
% The largest element of each window: along one dimension after the other. NaN stays NaN.
if nargin < 5
    dilation = ones(size(kernel));
end
if nargin < 6
    ceil_mode = false;
end
[y, counts] = ops.pool_window(x, kernel, stride, pads, dilation, ceil_mode, ops.lowest(x));
missing = isfloat(x) && any(isnan(x(:)));
for dim = 1:numel(kernel)
    at = cell(1, numel(kernel) + 2);
    at(:) = {':'};
    whole = y;
    for k = 1:kernel(dim)
        first = (k - 1) * dilation(dim) + 1;
        at{dim} = first:stride(dim):first + stride(dim) * (counts(dim) - 1);
        if k == 1
            y = whole(at{:});
        elseif missing
            y = ops.maximum(y, whole(at{:}));
        else
            y = max(y, whole(at{:}));
        end
    end
end
end
