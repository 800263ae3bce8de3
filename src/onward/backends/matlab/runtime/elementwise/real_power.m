function y = real_power(x, n)
% x to the power of n as IEEE 754 has it; NaN where the result is no real number.
y = abs(x) .^ n;
is_below = x < 0 | (x == 0 & 1 ./ x < 0);
turned = is_below & n == fix(n) & mod(n, 2) == 1;
y(turned) = -y(turned);
y(x < 0 & ~isinf(x) & n ~= fix(n)) = NaN;
y((x == 1 | n == 0) & true(size(y))) = 1;
end
