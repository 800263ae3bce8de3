function y = instance_norm(x, scale, bias, epsilon, dim)
% Each channel of each image normalized by itself, and scaled.
shape = [ones(1, dim - 1), numel(scale), 1];
y = ops.normalized(x, 1:dim - 1, epsilon) .* reshape(scale, shape) + reshape(bias, shape);
end
