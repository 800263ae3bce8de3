function y = per_block(parameter, dim, block, n)
% One number for each block of elements along a dimension, repeated for all n of them.
at = repmat({':'}, 1, max(ndims(parameter), dim));
at{dim} = floor((0:n - 1) / block) + 1;
y = parameter(at{:});
end
