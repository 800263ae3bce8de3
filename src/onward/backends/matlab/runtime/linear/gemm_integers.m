function y = gemm_integers(a, b, c, alpha, beta)
% alpha * b * a + beta * c of integers, cut off to whole numbers.
y = ops.matmul_integers(a, b);
if alpha ~= 1 || (~isempty(c) && beta ~= 1)
    z = alpha * double(y);
    if ~isempty(c)
        z = z + beta * double(c);
    end
    y = ops.to_integer(z, class(a));
elseif ~isempty(c)
    y = ops.add_integers(y, c);
end
end
