function [y, mean, var] = batch_norm_train(x, scale, bias, mean, var, epsilon, momentum, dim)
% Channels scaled by their own statistics, of which the running ones take their share.
dims = setdiff(1:max(ndims(x), dim + 1), dim);
own_mean = ops.mean(x, dims);
own_var = ops.mean((x - own_mean) .^ 2, dims);
shape = [ones(1, dim - 1), numel(scale), 1];
y = (x - own_mean) ./ sqrt(own_var + epsilon) .* reshape(scale, shape) + reshape(bias, shape);
mean = momentum * mean + (1 - momentum) * reshape(own_mean, size(mean));
var = momentum * var + (1 - momentum) * reshape(own_var, size(var));
end
