function y = float_divide(a, b)
% A quotient of numbers; by zero it is infinite.
y = double(a) / double(b);
end
