function y = one_hot(indices, depth, values, dim, rank)
% The second of two values where an index says, along a new dimension, and the first elsewhere.
depth = double(depth);
own = [size(indices), ones(1, rank - ndims(indices))];
own = own(1:rank);
k = double(indices);
k(k < 0) = k(k < 0) + depth;
k = reshape(k, [own(1:dim - 1), 1, own(dim:end), 1]);
numbers = reshape(0:depth - 1, [ones(1, dim - 1), depth, 1]);
hit = k == numbers;
y = repmat(values(1), size(hit));
y(hit) = values(2);
end
