function y = scatter_elements(x, indices, updates, dim, rank, reduction)
% An array with updates at places that differ from those of the updates along one dimension only.
y = ops.combined(x, ops.element_places(size(x), indices, dim, rank), updates, reduction);
end
