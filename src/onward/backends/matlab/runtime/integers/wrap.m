function y = wrap(x, kind)
% Whole numbers of 64 bits as those of a class of at most 32 bits, of which they keep the low bits.
bits = 8 * numel(typecast(cast(0, kind), 'uint8'));
span = cast(2 ^ bits, class(x));
x = mod(x, span);
if kind(1) ~= 'u'
    upper = x >= span / 2;
    x(upper) = x(upper) - span;
end
y = cast(x, kind);
end
