function y = remainder_of_integers(a, b, by_sign)
% What is left of a divided by b, with the sign of b, or of a. Octave does not survive a division of the least by -1.
[a, b] = ops.same_class(a, b);
b(b == -1) = 1;
if by_sign
    y = mod(a, b);
else
    y = rem(a, b);
end
end
