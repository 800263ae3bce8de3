function y = bit_shift(x, amount, direction)
% Integers with their bits moved; those that leave are lost, and the sign stays where they go to the right.
[x, amount] = ops.same_class(x, amount);
kind = class(x);
bits = 8 * numel(typecast(cast(0, kind), 'uint8'));
amount = double(amount);
far = amount >= bits | amount < 0;
amount(far) = 0;
if direction > 0
    plain = strrep(['u' kind], 'uu', 'u');
    step = cast(2 .^ amount, plain);
    z = ops.multiply_integers(reshape(typecast(x(:), plain), size(x)), step);
    y = reshape(typecast(z(:), kind), size(x));
    y(far) = 0;
else
    whole = 2 .^ amount;
    step = cast(min(whole, 2 ^ (bits - 2)), kind);
    y = (x - mod(x, step)) ./ step;
    last = whole > 2 ^ (bits - 2);
    y(last) = (y(last) - mod(y(last), 2)) ./ 2;
    y(far) = 0;
    y(far & x < 0) = -1;
end
end
