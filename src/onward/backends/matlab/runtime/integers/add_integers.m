function y = add_integers(a, b)
% A sum of integers, which keeps the low bits where it is too large.
[a, b] = ops.same_class(a, b);
kind = class(a);
if ~any(strcmp(kind, {'int64', 'uint64'}))
    y = ops.wrap(int64(a) + int64(b), kind);
    return
end
y = a + b;
if any(y(:) == intmax(kind)) || any(y(:) == intmin(kind))
    y = ops.add_halves(a, b);
end
end
