function y = to_pairs(z)
% Real and imaginary parts along the first dimension, which was 1.
y = cat(1, real(z), imag(z));
end
