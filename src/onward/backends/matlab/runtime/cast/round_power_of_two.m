function y = round_power_of_two(x, saturate, mode)
% Rounded to powers of two: 'up', 'down', or to the 'nearest' one.
z = abs(double(x));
[f, e] = log2(z);
down = e - 1;
exact = f == 0.5;
switch mode
    case 'up'
        e = down + ~exact;
    case 'down'
        e = down;
    otherwise
        e = down + (f >= 0.75);
end
if saturate
    e = max(min(e, 127), -127);
end
y = single(2 .^ e);
y(e > 127) = NaN;
y(e < -127) = NaN;
y(z == 0) = single(2 ^ -127);
if saturate
    y(isinf(z)) = single(2 ^ 127);
else
    y(isinf(z)) = NaN;
    y(z == 0) = NaN;
end
y(isnan(x)) = NaN;
end
