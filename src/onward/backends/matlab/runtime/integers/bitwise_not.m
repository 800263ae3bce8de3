function y = bitwise_not(x)
% Integers with every bit turned.
kind = class(x);
if kind(1) == 'u'
    y = intmax(kind) - x;
else
    y = bitxor(typecast(x(:), ['u' kind]), intmax(['u' kind]));
    y = reshape(typecast(y, kind), size(x));
end
end
