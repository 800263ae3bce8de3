function y = gather_nd(x, indices, inner, rank, batch, rank_of_indices)
% Parts of an array at places with several coordinates; the last dimensions, so many, are those of a batch.
shape = [size(x), ones(1, rank - ndims(x))];
shape = shape(1:rank);
own = [size(indices), ones(1, rank_of_indices - ndims(indices))];
own = own(1:rank_of_indices);
if isempty(indices) && own(1) > 0
    place = zeros(1, 0);
else
    place = ops.part_places(shape, reshape(indices, own(1), []), inner, batch);
end
images = prod(shape(rank - batch + 1:end));
each = prod(shape(inner + 1:rank - batch));
if images > 1
    offset = repmat((0:images - 1) * each, numel(place) / images, 1);
    place = place + offset(:)';
end
parts = reshape(x, [prod(shape(1:inner)), each * images]);
shape = [shape(1:inner), own(2:end)];
y = reshape(parts(:, place), [shape, ones(1, 2 - numel(shape))]);
end
