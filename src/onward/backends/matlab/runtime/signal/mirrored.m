function z = mirrored(half, dim, n)
% The spectrum of n real numbers along a dimension, of which the first half is known; zero where it is too short.
at = repmat({':'}, 1, max(ndims(half), dim));
known = min(size(half, dim), floor(n / 2) + 1);
at{dim} = 1:known;
half = half(at{:});
before = zeros(1, max(ndims(half), dim));
after = before;
after(dim) = floor(n / 2) + 1 - known;
half = ops.pad(half, before, after, 'constant', 0);
at{dim} = floor((n + 1) / 2):-1:2;
z = cat(dim, half, conj(half(at{:})));
at{dim} = 1;
z(at{:}) = real(z(at{:}));
if mod(n, 2) == 0 && n > 0
    at{dim} = n / 2 + 1;
    z(at{:}) = real(z(at{:}));
end
end
