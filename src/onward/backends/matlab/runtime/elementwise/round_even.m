function y = round_even(x)
% Rounded to whole numbers; a half goes to the even one.
y = round(x);
odd_half = abs(x - fix(x)) == 0.5 & mod(y, 2) ~= 0;
y(odd_half) = y(odd_half) - sign(x(odd_half));
y(y == 0 & x < 0) = -y(y == 0 & x < 0);
end
