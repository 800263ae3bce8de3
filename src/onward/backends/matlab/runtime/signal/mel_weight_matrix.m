function y = mel_weight_matrix(bins, n, rate, lower, upper, kind)
% The matrix that turns a spectrum of floor(n / 2) + 1 frequencies into one of triangles: bins x frequencies.
bins = double(bins);
n = double(n);
low = 2595 * log10(1 + double(lower) / 700);
high = 2595 * log10(1 + double(upper) / 700);
step = (high - low) / (bins + 2);
corner = floor((n + 1) * 700 * (10 .^ (((0:bins + 1) * step + low) / 2595) - 1) / double(rate));
y = zeros(bins, floor(n / 2) + 1);
for k = 1:bins
    up = corner(k):corner(k + 1);
    if corner(k + 1) > corner(k)
        y(k, up + 1) = (up - corner(k)) / (corner(k + 1) - corner(k));
    else
        y(k, up + 1) = 1;
    end
    down = corner(k + 1):corner(k + 2) - 1;
    y(k, down + 1) = (corner(k + 2) - down) / (corner(k + 2) - corner(k + 1));
end
if any(strcmp(kind, {'single', 'double'}))
    y = cast(y, kind);
else
    y = ops.to_integer(y, kind);
end
end
