function y = running_product(x, dim, exclusive, backwards)
% Products of all elements up to each one along a dimension.
y = ops.running(x, dim, exclusive, backwards, 'prod');
end
