function y = integer_power(x, n)
% Integers to a power; the result has the class of the base.
if isfloat(n) && ~isscalar(n) || isscalar(n) && isfloat(n) && n ~= fix(n)
    y = ops.to_integer(ops.real_power(double(x), double(n)), class(x));
    return
end
shape = ops.common_size(size(x), size(n));
base = ops.expand(x, shape);
n = double(ops.expand(n, shape));
exponent = n;
y = ones(shape, class(x));
negative = n < 0;
while any(n(:) > 0)
    odd = mod(n, 2) == 1 & n > 0;
    product = ops.multiply_integers(y, base);
    y(odd) = product(odd);
    n = floor(n / 2);
    base = ops.multiply_integers(base, base);
end
if any(negative(:))
    whole = double(ops.expand(x, shape));
    y(negative) = ops.to_integer(whole(negative) .^ exponent(negative), class(x));
end
end
