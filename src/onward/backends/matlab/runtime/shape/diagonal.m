function y = diagonal(rows, columns, k, kind)
% Ones on a diagonal of a matrix, of which the array is the transposed one.
[column, row] = ndgrid(1:columns, 1:rows);
y = column - row == k;
if ~strcmp(kind, 'logical')
    y = cast(y, kind);
end
end
