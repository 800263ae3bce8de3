function y = running_total(x, dim, exclusive, backwards)
% Sums of all elements up to each one along a dimension.
y = ops.running(x, dim, exclusive, backwards, 'sum');
end
