function y = triangle(x, k, is_upper)
% The upper or lower triangle of matrices; the others are zero.
[column, row] = ndgrid(1:size(x, 1), 1:size(x, 2));
distance = column - row;
if is_upper
    kept = distance >= double(k);
else
    kept = distance <= double(k);
end
y = x;
outside = repmat(~kept, [1, 1, numel(x) / max(numel(kept), 1)]);
y(outside(:)) = 0;
end
