function y = float_remainder(a, b)
% What is left of a divided by b, with the sign of a: b is taken away as often as it goes in, exactly.
kind = class(a(1:0) + b(1:0));
shape = ops.common_size(size(a), size(b));
x = ops.expand(double(a), shape);
d = ops.expand(abs(double(b)), shape);
y = abs(x);
counted = isfinite(y) & isfinite(d) & d > 0;
[~, high] = log2(y(counted));
[~, low] = log2(d(counted));
for k = max([high(:) - low(:); -1]):-1:0
    part = d .* 2 ^ min(k, 1000) .* 2 ^ max(k - 1000, 0);
    over = counted & y >= part;
    y(over) = y(over) - part(over);
end
y(x < 0 | (x == 0 & 1 ./ x < 0)) = -y(x < 0 | (x == 0 & 1 ./ x < 0));
y(~counted & ~(isfinite(x) & isinf(d))) = NaN;
y = cast(y, kind);
end
