function y = relu(x)
% The positive part; NaN stays NaN.
y = max(x, 0);
if isfloat(x) && any(isnan(x(:)))
    y(isnan(x)) = NaN;
end
end
