function y = elements_at(x, at, shape)
% The elements of an image, elements x channels, at whole places that count from 0; zero outside of it.
inside = true;
index = 0;
step = 1;
for dim = 1:numel(at)
    inside = inside & at{dim} >= 0 & at{dim} < shape(dim);
    index = index + double(at{dim}) * step;
    step = step * shape(dim);
end
y = zeros([numel(index), size(x, 2)], 'like', x);
y(inside, :) = x(index(inside) + 1, :);
end
