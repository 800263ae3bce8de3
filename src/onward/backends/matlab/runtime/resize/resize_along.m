function y = resize_along(x, dim, places, scale, kind, o)
% Resize one dimension by weighted sums of elements; the array was of a class of numbers.
n = size(x, dim);
if ~o.antialias
    if strcmp(o.mode, 'linear')
        [numbers, weights] = ops.linear_taps(places, n);
    else
        [numbers, weights] = ops.cubic_taps(places, n, o.cubic, o.exclude_outside);
    end
    y = ops.weigh(x, dim, numbers, weights);
    return
end
[numbers, weights] = ops.antialias_taps(places, n, scale, o.mode, o.cubic, o.exclude_outside);
if any(strcmp(kind, {'uint8', 'int8'}))
    fixed = ops.round_even(double(weights) * 2 ^ 22);
    y = floor((ops.weigh(double(x), dim, numbers, fixed) + 2 ^ 21) / 2 ^ 22);
    y = single(min(max(y, double(intmin(kind))), double(intmax(kind))));
else
    y = ops.weigh(x, dim, numbers, weights);
    if ~any(strcmp(kind, {'single', 'double'}))
        y = floor(abs(y) + 0.5) .* sign(y);
    end
end
end
