function y = nonzero(x, rank)
% The coordinates of what is not zero, from 0: a row for each, the last dimension first.
place = find(x) - 1;
place = place(:);
shape = [size(x), ones(1, rank - ndims(x))];
y = zeros(numel(place), rank, 'int64');
for dim = 1:rank
    y(:, rank + 1 - dim) = mod(place, shape(dim));
    place = floor(place / shape(dim));
end
end
