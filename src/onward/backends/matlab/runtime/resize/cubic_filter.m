function y = cubic_filter(distance, a)
% The weight of an element at some distance, in Keys' family of cubic splines.
d = abs(distance);
y = ((a * d - 5 * a) .* d + 8 * a) .* d - 4 * a;
near = ((a + 2) * d - (a + 3)) .* d .* d + 1;
y(d <= 1) = near(d <= 1);
y(d >= 2) = 0;
end
