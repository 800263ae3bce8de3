function y = product(x, dims)
% The product along dimensions.
y = x;
for dim = dims
    if isfloat(x)
        y = prod(y, dim);
    else
        at = repmat({':'}, 1, max(ndims(y), dim));
        shape = [size(y), ones(1, dim - ndims(y))];
        shape(dim) = 1;
        whole = ones(shape, class(x));
        for k = 1:size(y, dim)
            at{dim} = k;
            whole = ops.multiply_integers(whole, y(at{:}));
        end
        y = whole;
    end
end
end
