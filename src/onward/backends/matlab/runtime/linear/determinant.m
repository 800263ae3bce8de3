function y = determinant(x)
% The determinant of each matrix.
shape = [size(x), 1];
y = zeros([1, 1, shape(3:end)], class(x));
for k = 1:numel(y)
    y(k) = det(x(:, :, k));
end
end
