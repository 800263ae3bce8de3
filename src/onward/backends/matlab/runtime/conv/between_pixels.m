function y = between_pixels(picture, x, y_place)
% The values of a picture at places between its pixels, which are counted from 0; outside it is zero.
[width, height] = size(picture);
left = floor(x);
top = floor(y_place);
y = zeros(numel(x), 1, class(picture));
for dx = 0:1
    for dy = 0:1
        column = left + dx;
        row = top + dy;
        weight = (1 - abs(x - column)) .* (1 - abs(y_place - row));
        inside = column >= 0 & column < width & row >= 0 & row < height;
        at = column(inside) + 1 + row(inside) * width;
        y(inside) = y(inside) + reshape(picture(at), [], 1) .* weight(inside);
    end
end
end
