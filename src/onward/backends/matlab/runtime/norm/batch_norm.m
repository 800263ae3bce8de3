function y = batch_norm(x, scale, bias, mean, var, epsilon, dim)
% Channels scaled by statistics that are given.
shape = [ones(1, dim - 1), numel(scale), 1];
factor = scale(:) ./ sqrt(var(:) + epsilon);
y = x .* cast(reshape(factor, shape), class(x)) + cast(reshape(bias(:) - mean(:) .* factor, shape), class(x));
end
