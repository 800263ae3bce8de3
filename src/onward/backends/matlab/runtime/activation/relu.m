function y = relu(x)
% The positive part; NaN stays NaN.
y = max(x, 0);
if isfloat(x)
    missing = isnan(x);
    if any(missing(:))
        y(missing) = NaN;
    end
end
end
