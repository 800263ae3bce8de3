function y = round_power_of_two(x, saturate, mode)
% The exponents of single precision alone, rounded 'up', 'down', or to the 'nearest' one.
y = single(x);
number = typecast(y(:), 'uint32');
exponent = double(bitand(bitshift(number, -23), 255));
fraction = bitand(number, 2 ^ 23 - 1);
half = 2 ^ 22;
switch mode
    case 'up'
        added = fraction > 0;
    case 'down'
        added = false(size(fraction));
    otherwise
        added = fraction > half | (fraction == half & exponent > 0);
end
rounded = min(exponent + added, 255 - saturate);
rounded(exponent == 255) = 255;
power = single(2 .^ (rounded - 127));
power(rounded == 255) = NaN;
y(:) = power;
end
