function y = trunc_divide(a, b)
% A quotient of whole numbers without its fraction.
y = fix(double(a) / double(b));
end
