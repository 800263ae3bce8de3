function y = roi_align(x, rois, images, cells, scale, ratio, mode, half_pixel)
% Regions (x1, y1, x2, y2) of images as grids of cells [w, h], from samples between the elements.
channels = size(x, 3);
count = size(rois, 2);
y = zeros([cells, channels, count], class(x));
rois = cast(rois, class(x)) * scale - 0.5 * half_pixel;
for k = 1:count
    taps = cell(1, 2);
    for dim = 1:2
        span = rois(dim + 2, k) - rois(dim, k);
        if ~half_pixel
            span = max(span, 1);
        end
        taps{dim} = ops.roi_samples(rois(dim, k), span / cells(dim), cells(dim), ratio, size(x, dim));
    end
    samples = [numel(taps{1}.low), numel(taps{2}.low)] ./ cells;
    if any(samples == 0)
        continue
    end
    image = x(:, :, :, double(images(k)) + 1);
    found = [];
    for pick = 0:3
        [i, u] = ops.roi_corner(taps{1}, mod(pick, 2));
        [j, v] = ops.roi_corner(taps{2}, floor(pick / 2));
        part = image(i, j, :) .* (u * v');
        if isempty(found)
            found = part;
        elseif strcmp(mode, 'max')
            found = max(found, part);
        else
            found = found + part;
        end
    end
    found = reshape(found, [samples(1), cells(1), samples(2), cells(2), channels]);
    if strcmp(mode, 'max')
        found = max(max(found, [], 1), [], 3);
    else
        found = sum(sum(found, 1), 3) / prod(samples);
    end
    y(:, :, :, k) = reshape(found, [cells, channels]);
end
end
