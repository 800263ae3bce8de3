function z = from_pairs(x)
% Numbers whose real part, and imaginary part if there is one, lie along the first dimension.
at = repmat({':'}, 1, ndims(x) - 1);
z = x(1, at{:});
if ~isfloat(z)
    z = double(z);
end
if size(x, 1) == 2
    z = complex(z, x(2, at{:}));
end
end
