function y = grid_sample(x, grid, rank, mode, padding, align_corners)
% The values of images over so many dimensions at the places of a grid, which span -1 to 1 along each of them.
shape = [size(x), ones(1, rank + 2 - ndims(x))];
places = [size(grid), ones(1, rank + 2 - ndims(grid))];
places = places(2:rank + 1);
kind = 'single';
if isa(grid, 'double') || isa(x, 'double')
    kind = 'double';
end
values = reshape(x, [prod(shape(1:rank)), shape(rank + 1:rank + 2)]);
if ~strcmp(mode, 'nearest')
    values = cast(values, kind);
end
grid = reshape(cast(grid, kind), [rank, prod(places), shape(rank + 2)]);
y = zeros([prod(places), shape(rank + 1:rank + 2)], class(values));
for k = 1:shape(rank + 2)
    at = cell(1, rank);
    for dim = 1:rank
        at{dim} = reshape(grid(dim, :, k), [], 1) + 1;
        if align_corners
            at{dim} = at{dim} / 2 * (shape(dim) - 1);
        else
            at{dim} = (at{dim} * shape(dim) - 1) / 2;
        end
    end
    y(:, :, k) = ops.sample_at(values(:, :, k), at, shape(1:rank), mode, padding, align_corners);
end
if ~isfloat(x) && isfloat(y)
    y = ops.to_integer(y, class(x));
end
y = reshape(cast(y, class(x)), [places, shape(rank + 1:rank + 2)]);
end
