function y = mean_of_integers(x, dims)
% The mean of integers along dimensions, cut off to whole numbers.
count = 1;
for dim = dims
    count = count * size(x, dim);
end
y = ops.to_integer(fix(double(ops.total_of_integers(int64(x), dims)) / count), class(x));
end
