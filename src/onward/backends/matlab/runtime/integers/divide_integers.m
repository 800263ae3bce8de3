function y = divide_integers(a, b)
% A quotient of integers without its fraction.
[a, b] = ops.same_class(a, b);
y = (a - rem(a, b)) ./ b;
end
