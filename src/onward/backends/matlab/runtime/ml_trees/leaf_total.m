function y = leaf_total(leaf, weights, aggregate)
% The 'sum', 'average', 'min' or 'max' of what the leaves of each column give to each target: targets x columns.
given = reshape(weights(:, double(leaf(:)) + 1), size(weights, 1), size(leaf, 1), size(leaf, 2));
switch aggregate
    case 'sum'
        y = sum(given, 2);
    case 'average'
        y = sum(given, 2) / size(leaf, 1);
    case 'min'
        y = min(given, [], 2);
    otherwise
        y = max(given, [], 2);
end
y = reshape(y, size(weights, 1), size(leaf, 2));
end
