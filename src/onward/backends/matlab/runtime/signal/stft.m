function y = stft(x, step, window, n, onesided)
% The Fourier transform of each frame of signals: [2, bins, frames, batch].
z = ops.from_pairs(x);
step = double(step);
count = size(x, 2);
n = double(n);
if isempty(n) && isempty(window)
    n = count;
elseif isempty(n)
    n = numel(window);
end
frames = floor((count - n) / step) + 1;
at = (1:n)' + (0:frames - 1) * step;
z = reshape(z, count, size(x, 3));
z = reshape(z(at(:), :), [1, n, frames, size(x, 3)]);
if ~isempty(window)
    z = z .* reshape(cast(window, class(z)), 1, n);
end
y = cast(ops.to_pairs(ops.spectrum(z, 2, n, onesided)), class(x));
end
