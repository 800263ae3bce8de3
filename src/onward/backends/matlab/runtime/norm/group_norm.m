function y = group_norm(x, groups, scale, bias, epsilon, dim)
% Groups of channels normalized by themselves, and scaled.
shape = [size(x), ones(1, dim + 1 - ndims(x))];
y = reshape(x, [prod(shape(1:dim)) / groups, groups, shape(dim + 1:end)]);
y = reshape(ops.normalized(y, 1, epsilon), shape);
each = [ones(1, dim - 1), numel(scale), 1];
y = y .* reshape(scale, each) + reshape(bias, each);
end
