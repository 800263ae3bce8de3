function y = affine_grid(theta, shape, align_corners)
% The grid at which grid_sample reads an image of a shape (as the file has it) that theta transforms.
shape = double(shape(:)');
spatial = shape(end:-1:3);
rank = numel(spatial);
points = ones([rank + 1, spatial], class(theta));
for dim = 1:rank
    n = spatial(dim);
    if ~align_corners
        places = (2 * (0:n - 1) + 1) / n - 1;
    elseif n > 1
        places = 2 * (0:n - 1) / (n - 1) - 1;
    else
        places = 0;
    end
    points(dim, :) = reshape(repmat(reshape(places, [ones(1, dim - 1), n, 1]), [spatial(1:dim - 1), 1, spatial(dim + 1:end)]), 1, []);
end
y = zeros([rank, prod(spatial), size(theta, 3)], class(theta));
for k = 1:size(theta, 3)
    y(:, :, k) = theta(:, :, k).' * points(:, :);
end
y = reshape(y, [rank, spatial, size(theta, 3)]);
end
