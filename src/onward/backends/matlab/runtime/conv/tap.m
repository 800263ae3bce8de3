function at = tap(k, kernel, stride, dilation, counts)
% Where the elements lie that the k-th element of a window meets, for all windows: an index for each dimension.
rank = numel(kernel);
at = cell(1, rank + 2);
at(:) = {':'};
k = k - 1;
for dim = 1:rank
    offset = mod(k, kernel(dim)) * dilation(dim);
    k = floor(k / kernel(dim));
    at{dim} = offset + 1:stride(dim):offset + 1 + stride(dim) * (counts(dim) - 1);
end
end
