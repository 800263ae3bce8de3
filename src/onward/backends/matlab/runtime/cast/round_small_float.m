function y = round_small_float(x, bits, lowest, largest, over)
% Rounded to a float of 8 bits or less; what is too large becomes the 'largest', 'inf' or 'nan'.
if strcmp(over, 'largest')
    z = max(min(double(x), largest), -largest);
    z(isnan(x)) = NaN;
    y = ops.round_float(z, bits, lowest);
else
    y = ops.round_float(x, bits, lowest);
    far = abs(y) > largest;
    if strcmp(over, 'inf')
        y(far) = Inf * sign(y(far));
    else
        y(far) = NaN;
    end
end
end
