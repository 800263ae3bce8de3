function [low, high] = box_corners(boxes, is_centered)
% The lowest and the highest corner of boxes, which are two opposite corners, or a centre and two sizes.
a = boxes(1:2, :, :);
b = boxes(3:4, :, :);
if is_centered
    low = a - b / 2;
    high = a + b / 2;
else
    low = min(a, b);
    high = max(a, b);
end
end
