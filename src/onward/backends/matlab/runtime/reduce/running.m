function y = running(x, dim, exclusive, backwards, what)
% A 'sum' or 'prod' of all elements up to each one along a dimension, or before it, or from the end.
if backwards
    x = flip(x, dim);
end
is_sum = strcmp(what, 'sum');
if isfloat(x)
    if is_sum
        y = cumsum(x, dim);
    else
        y = cumprod(x, dim);
    end
else
    y = x;
    at = repmat({':'}, 1, max(ndims(x), dim));
    before = at;
    for k = 2:size(x, dim)
        before{dim} = k - 1;
        at{dim} = k;
        if is_sum
            y(at{:}) = ops.add_integers(y(before{:}), x(at{:}));
        else
            y(at{:}) = ops.multiply_integers(y(before{:}), x(at{:}));
        end
    end
end
if exclusive
    rank = max(ndims(x), dim);
    before = zeros(1, rank);
    before(dim) = 1;
    y = ops.pad(y, before, -before, 'constant', ~is_sum);
end
if backwards
    y = flip(y, dim);
end
end
