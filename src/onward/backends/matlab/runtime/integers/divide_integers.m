function y = divide_integers(a, b)
% A quotient of integers without its fraction. Of the least one by -1, which Octave does not survive, it is the least.
[a, b] = ops.same_class(a, b);
minus = b == -1;
b(minus) = 1;
y = (a - rem(a, b)) ./ b;
y(minus) = ops.subtract_integers(0, a(minus));
end
