function y = low_bits(x, bits, is_signed)
% The low bits of whole numbers, as a number with or without a sign.
span = 2 ^ bits;
z = mod(fix(double(x)), span);
if is_signed
    z(z >= span / 2) = z(z >= span / 2) - span;
    y = int8(z);
else
    y = uint8(z);
end
end
