function y = weigh(x, dim, numbers, weights)
% Weighted sums of the elements along a dimension that stand in each row of numbers.
rank = max(ndims(x), dim);
at = repmat({':'}, 1, rank);
shape = ones(1, rank);
shape(dim) = size(numbers, 1);
y = 0;
for k = 1:size(numbers, 2)
    at{dim} = numbers(:, k);
    y = y + x(at{:}) .* reshape(cast(weights(:, k), class(x)), shape);
end
end
