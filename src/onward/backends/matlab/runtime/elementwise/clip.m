function y = clip(x, low, high)
% Values within bounds, of which [] is none; NaN stays NaN, of which there is none where the sum is a number.
y = x;
if ~isempty(low)
    y = max(y, low);
end
if nargin > 2 && ~isempty(high)
    y = min(y, high);
end
if isfloat(x) && isnan(sum(x(:)))
    y(isnan(x)) = NaN;
end
y = cast(y, class(x));
end
