function y = rms_norm(x, scale, epsilon, count)
% The first dimensions, so many, divided by their root mean square, and scaled.
y = x ./ sqrt(ops.mean(x .^ 2, 1:count) + epsilon) .* scale;
end
