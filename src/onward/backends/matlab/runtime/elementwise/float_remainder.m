function y = float_remainder(a, b)
% What is left of a divided by b, with the sign of a.
x = double(a);
d = double(b);
y = x - d .* fix(x ./ d);
y = y + zeros(size(x + d));
whole = x + zeros(size(y));
by = d + zeros(size(y));
same = isinf(by) & isfinite(whole);
y(same) = whole(same);
over = abs(y) >= abs(by) & isfinite(by);
y(over) = y(over) - sign(y(over)) .* abs(by(over));
opposite = y ~= 0 & (y < 0) ~= (whole < 0);
y(opposite) = y(opposite) + sign(whole(opposite)) .* abs(by(opposite));
y = cast(y, class(a + b));
end
