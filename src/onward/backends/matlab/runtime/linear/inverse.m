function y = inverse(x)
% The inverse of each matrix.
y = x;
for k = 1:numel(x) / max(size(x, 1) ^ 2, 1)
    y(:, :, k) = inv(x(:, :, k));
end
end
