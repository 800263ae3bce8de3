function y = normalized(x, dims, epsilon)
% Values with the mean 0 and the variance 1 along dimensions.
y = x - ops.mean(x, dims);
y = y ./ sqrt(ops.mean(y .^ 2, dims) + epsilon);
end
