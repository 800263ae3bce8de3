function y = mean_variance_norm(x, dims)
% Values with the mean 0 and the variance 1 along dimensions.
y = x - ops.mean(x, dims);
y = y ./ (sqrt(ops.mean(y .^ 2, dims)) + 1e-9);
end
