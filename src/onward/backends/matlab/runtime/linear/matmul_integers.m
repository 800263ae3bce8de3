function y = matmul_integers(a, b)
% Products b * a of matrices of integers, which keep the low bits where they are too large.
kind = class(a);
p = double(a);
q = double(b);
bound = max(abs([p(:); 0])) * max(abs([q(:); 0])) * size(p, 1);
if bound < 2 ^ 53
    y = ops.to_integer(ops.matmul(p, q), kind);
    return
end
low = ops.matmul(mod(p, 2 ^ 20), mod(q, 2 ^ 20));
if max(abs([p(:); q(:)])) >= 2 ^ 40 || max(low(:)) >= 2 ^ 53
    error('onward:range', 'the product of these integers needs more than 53 bits');
end
middle = ops.matmul(floor(p / 2 ^ 20), mod(q, 2 ^ 20)) + ops.matmul(mod(p, 2 ^ 20), floor(q / 2 ^ 20));
high = ops.matmul(floor(p / 2 ^ 20), floor(q / 2 ^ 20));
y = ops.add_integers(int64(low), ops.multiply_integers(int64(middle), int64(2 ^ 20)));
y = ops.add_integers(y, ops.multiply_integers(int64(high), int64(2 ^ 40)));
y = ops.to_integer(y, kind);
end
