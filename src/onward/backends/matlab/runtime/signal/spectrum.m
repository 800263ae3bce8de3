function z = spectrum(z, dim, n, onesided)
% The Fourier transform of the first n numbers along a dimension, or the first half of it.
z = fft(z, n, dim);
if onesided
    at = repmat({':'}, 1, max(ndims(z), dim));
    at{dim} = 1:floor(n / 2) + 1;
    z = z(at{:});
end
end
