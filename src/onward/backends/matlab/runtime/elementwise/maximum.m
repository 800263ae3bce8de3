function y = maximum(a, b)
% The larger of two; NaN where either is.
y = max(a, b);
missing = isnan(a) | isnan(b);
if any(missing(:))
    y(missing) = NaN;
end
end
