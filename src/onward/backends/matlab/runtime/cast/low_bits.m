function y = low_bits(x, bits, is_signed)
% The low bits of whole numbers, as a number with or without a sign.
span = 2 ^ bits;
if isinteger(x)
    z = double(mod(x, cast(span, class(x))));
else
    z = mod(fix(double(x)), span);
end
if is_signed
    z(z >= span / 2) = z(z >= span / 2) - span;
    y = int8(z);
else
    y = uint8(z);
end
end
