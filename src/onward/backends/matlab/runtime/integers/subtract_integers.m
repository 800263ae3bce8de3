function y = subtract_integers(a, b)
% A difference of integers, which keeps the low bits where it is out of range.
[a, b] = ops.same_class(a, b);
kind = class(a);
if ~any(strcmp(kind, {'int64', 'uint64'}))
    y = ops.wrap(int64(a) - int64(b), kind);
    return
end
y = a - b;
if any(y(:) == intmax(kind)) || any(y(:) == intmin(kind))
    minus = ops.bitwise_not(b);
    y = ops.add_halves(ops.add_halves(a, minus), ones(size(a), kind));
end
end
