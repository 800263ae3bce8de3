function y = compress(x, condition, dim)
% The parts of an array along a dimension for which a condition holds.
at = repmat({':'}, 1, max(ndims(x), dim));
at{dim} = find(condition);
y = x(at{:});
end
