function y = hardmax(x, dim)
% 1 for the first of the largest elements along a dimension, 0 for the others.
place = double(ops.place_of(x, dim, 'max', false)) + 1;
numbers = reshape(1:size(x, dim), [ones(1, dim - 1), size(x, dim), 1]);
y = cast((place == numbers) & true(size(x)), class(x));
end
