function y = absolute_integers(x)
% Absolute values; that of the least number is not in range, and stays what it is.
y = abs(x);
least = x == intmin(class(x)) & x < 0;
y(least) = x(least);
end
