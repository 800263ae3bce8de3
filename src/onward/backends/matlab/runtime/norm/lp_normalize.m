function y = lp_normalize(x, p, dim)
% Values divided by their p-norm along a dimension; zeros stay zeros.
if p == 1
    norm = sum(abs(x), dim, 'double');
else
    norm = sqrt(sum(x .^ 2, dim, 'double'));
end
y = x ./ norm;
y((norm == 0) & true(size(x))) = 0;
end
