function y = relu(x)
% The positive part; NaN stays NaN, of which there is none where the sum is a number.
y = max(x, 0);
if isfloat(x) && isnan(sum(x(:)))
    y(isnan(x)) = NaN;
end
end
