function y = matmul(a, b)
% Products b * a of the matrices in two arrays; further dimensions broadcast.
if ndims(b) == 2
    shape = size(a);
    y = reshape(b * reshape(a, shape(1), prod(shape(2:end))), [size(b, 1), shape(2:end)]);
    return
end
rank = max([ndims(a), ndims(b), 3]);
p = [size(a), ones(1, rank - ndims(a))];
q = [size(b), ones(1, rank - ndims(b))];
pages = ops.common_size(p(3:end), q(3:end));
a = ops.expand(a, [p(1:2), pages]);
b = ops.expand(b, [q(1:2), pages]);
y = zeros([q(1), p(2), prod(pages)], class(a(1:0) + b(1:0)));
for k = 1:prod(pages)
    y(:, :, k) = b(:, :, k) * a(:, :, k);
end
y = reshape(y, [q(1), p(2), pages]);
end
