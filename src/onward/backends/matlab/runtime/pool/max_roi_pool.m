function y = max_roi_pool(x, rois, shape, scale)
% The largest elements of the cells of a grid of the shape [h, w] in each region, which is (image, x1, y1, x2, y2).
[width, height, channels, ~] = size(x);
count = size(rois, 2);
y = zeros([shape(2), shape(1), channels, count], class(x));
for k = 1:count
    roi = double(rois(:, k));
    corner = floor(roi(2:5) * scale + 0.5);
    cell_w = max(corner(3) - corner(1) + 1, 1) / shape(2);
    cell_h = max(corner(4) - corner(2) + 1, 1) / shape(1);
    for i = 1:shape(1)
        rows = max(min(floor((i - 1) * cell_h) + corner(2), height), 0) + 1:max(min(ceil(i * cell_h) + corner(2), height), 0);
        for j = 1:shape(2)
            left = max(min(floor((j - 1) * cell_w) + corner(1), width), 0) + 1;
            right = max(min(ceil(j * cell_w) + corner(1), width), 0);
            if right >= left && ~isempty(rows)
                part = x(left:right, rows, :, roi(1) + 1);
                y(j, i, :, k) = max(max(part, [], 1), [], 2);
            end
        end
    end
end
end
