function at = into_range(at, n, padding, align_corners)
% Places outside of a dimension, moved to its border or reflected there; for zeros, no further than these begin.
switch padding
    case 'zeros'
        at = ops.clip(at, -2, n + 1);
        return
    case 'reflection'
        low = -0.5;
        span = n;
        if align_corners
            low = 0;
            span = n - 1;
        end
        if span == 0
            at = zeros(size(at), class(at));
            return
        end
        at = mod(at - low, 2 * span);
        at(at > span) = 2 * span - at(at > span);
        at = at + low;
end
at = ops.clip(at, 0, n - 1);
end
