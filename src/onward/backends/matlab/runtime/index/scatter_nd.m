function y = scatter_nd(x, indices, updates, inner, rank, reduction)
% An array with updates at places with several coordinates; an update has the first dimensions, so many.
if isempty(indices) && size(indices, 1) > 0
    y = x;
    return
end
shape = [size(x), ones(1, rank - ndims(x))];
place = ops.part_places(shape(1:rank), reshape(indices, size(indices, 1), []), inner, 0);
each = prod(shape(1:inner));
place = repmat((1:each)', 1, numel(place)) + repmat((place - 1) * each, each, 1);
y = ops.combined(x, place, updates, reduction);
end
