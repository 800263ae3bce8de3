function y = bit_shift(x, amount, direction)
% Unsigned integers with their bits moved; those that leave are lost.
[x, amount] = ops.same_class(x, amount);
kind = class(x);
bits = 8 * numel(typecast(cast(0, kind), 'uint8'));
amount = double(amount);
far = amount >= bits;
if direction > 0
    y = ops.multiply_integers(x, cast(2 .^ min(amount, bits - 1), kind));
else
    step = cast(2 .^ min(amount, bits - 1), kind);
    y = (x - rem(x, step)) ./ step;
end
y(far) = 0;
end
