function place = part_places(shape, indices, inner, batch)
% Which part of an array each column of indices means; a part has the first dimensions, so many.
sizes = shape(inner + 1:end - batch);
count = numel(sizes);
steps = [1, cumprod(sizes(1:end - 1))];
place = ones(1, numel(indices) / max(size(indices, 1), 1));
for k = 1:count
    dim = count + 1 - k;
    part = ops.from_the_front(indices(k, :), sizes(dim));
    place = place + (part - 1) * steps(dim);
end
end
