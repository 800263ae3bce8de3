function y = cosine_window(n, coefficients, periodic, kind)
% A sum of cosines over one period, which ends after the last element, or with it if it is not periodic.
n = double(n);
if periodic
    period = n;
else
    period = max(n - 1, 1);
end
y = zeros(n, 1);
for k = 1:numel(coefficients)
    y = y + coefficients(k) * cos((k - 1) * (2 * pi * (0:n - 1)' / period));
end
if any(strcmp(kind, {'single', 'double'}))
    y = cast(y, kind);
else
    y = ops.to_integer(single(y), kind);
end
end
