function y = dft(x, dim, n, inverse, onesided)
% The Fourier transform along a dimension; the first dimension holds real and imaginary parts.
z = ops.from_pairs(x);
n = double(n);
if isempty(n)
    n = size(z, dim);
    if inverse && onesided
        n = 2 * (n - 1);
    end
end
if inverse && onesided
    y = real(ifft(ops.mirrored(z, dim, n), n, dim));
elseif inverse
    y = ops.to_pairs(ifft(z, n, dim));
else
    y = ops.to_pairs(ops.spectrum(z, dim, n, onesided));
end
y = cast(y, class(x));
end
