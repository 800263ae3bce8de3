function [y, mean, deviation] = layer_norm(x, scale, bias, epsilon, count)
% The first dimensions, so many, normalized together, and scaled.
mean = ops.mean(x, 1:count);
y = x - mean;
deviation = 1 ./ sqrt(ops.mean(y .^ 2, 1:count) + epsilon);
y = y .* deviation .* scale;
if ~isempty(bias)
    y = y + bias;
end
end
