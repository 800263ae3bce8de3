function y = weigh_corners(x, corners)
% Weighted sums along several dimensions at once, so that whole numbers are rounded once.
count = size(corners, 1);
rank = max([ndims(x), corners{:, 1}]);
at = repmat({':'}, 1, rank);
y = 0;
for pick = 0:2 ^ count - 1
    weight = single(1);
    for k = 1:count
        [dim, numbers, weights] = corners{k, :};
        side = mod(floor(pick / 2 ^ (k - 1)), 2) + 1;
        at{dim} = numbers(:, side);
        weight = weight .* reshape(weights(:, side), [ones(1, dim - 1), size(weights, 1), 1]);
    end
    y = y + x(at{:}) .* weight;
end
end
