function y = wrap(x, kind)
% Whole numbers of 64 bits as those of a class of at most 32 bits, of which they keep the low bits.
bits = 8 * numel(typecast(cast(0, kind), 'uint8'));
span = int64(2) ^ bits;
x = int64(mod(x, cast(span, class(x))));
if kind(1) ~= 'u'
    upper = x >= span / 2;
    x(upper) = x(upper) - span;
end
y = cast(x, kind);
end
