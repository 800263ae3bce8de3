function y = gather_elements(x, indices, dim, rank)
% Elements of an array, each with its own index along a dimension.
y = reshape(x(ops.element_places(size(x), indices, dim, rank)), size(indices));
end
