function y = real_power(x, n)
% x to the power of n; NaN where the result is no real number.
y = x .^ n;
if ~isreal(y) && isreal(x)
    no_real = x < 0 & n ~= fix(n) & ~isinf(x);
    y = real(y) + zeros(size(no_real), class(y));
    y(no_real + zeros(size(y)) > 0) = NaN;
    if any(isinf(x(:)) & x(:) < 0)
        z = abs(x) .^ n;
        at = (isinf(x) & x < 0 & n ~= fix(n)) + zeros(size(y)) > 0;
        y(at) = z(at);
    end
end
end
