function y = is_scored(leaf, given)
% Whether any leaf that a column reaches gives something to each target: targets x columns.
y = any(reshape(given(:, double(leaf(:)) + 1), size(given, 1), size(leaf, 1), size(leaf, 2)), 2);
y = reshape(y, size(given, 1), size(leaf, 2));
end
