function y = round_float(x, bits, lowest)
% Rounded to so many bits after the point, a half to the even one; below 2^lowest the steps stay the same.
if ~isfloat(x)
    x = double(x);
end
z = double(x);
[~, e] = log2(abs(z));
e = max(e - 1, lowest);
step = 2 .^ (e - bits);
y = single(ops.round_even(z ./ step) .* step);
same = ~isfinite(z) | z == 0;
y(same) = z(same);
end
