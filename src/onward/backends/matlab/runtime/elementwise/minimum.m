function y = minimum(a, b)
% The smaller of two; NaN where either is.
y = min(a, b);
missing = isnan(a) | isnan(b);
if any(missing(:))
    y(missing) = NaN;
end
end
