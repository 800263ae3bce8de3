function y = bitwise(what, a, b)
% Integers combined bit by bit: 'and', 'or', 'xor'.
[a, b] = ops.same_class(a, b);
kind = class(a);
shape = size(a);
plain = strrep(['u' kind], 'uu', 'u');
a = typecast(a(:), plain);
b = typecast(b(:), plain);
switch what
    case 'and'
        y = bitand(a, b);
    case 'or'
        y = bitor(a, b);
    otherwise
        y = bitxor(a, b);
end
y = reshape(typecast(y, kind), shape);
end
