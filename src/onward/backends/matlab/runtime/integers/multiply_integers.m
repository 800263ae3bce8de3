function y = multiply_integers(a, b)
% A product of integers, which keeps the low bits where it is too large.
[a, b] = ops.same_class(a, b);
kind = class(a);
if ~any(strcmp(kind, {'int64', 'uint64'}))
    if strcmp(kind, 'uint32')
        y = ops.wrap(uint64(a) .* uint64(b), kind);
    else
        y = ops.wrap(int64(a) .* int64(b), kind);
    end
    return
end
y = a .* b;
if any(y(:) == intmax(kind)) || any(y(:) == intmin(kind))
    y = ops.multiply_parts(a, b);
end
end
