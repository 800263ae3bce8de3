function y = unsqueeze(x, axes, rank)
% With further axes of 1, counted as the file counts them; the array has so many dimensions there.
axes = double(axes(:)');
whole = rank + numel(axes);
shape = size(x);
shape = [shape, ones(1, rank - numel(shape))];
shape = shape(1:max(rank, 0));
found = ones(1, whole);
found(setdiff(1:whole, whole - mod(axes, whole))) = shape;
y = reshape(x, [found, ones(1, 2 - numel(found))]);
end
