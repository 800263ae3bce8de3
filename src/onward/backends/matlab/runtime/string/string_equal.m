function y = string_equal(a, b)
% Where texts of two cell arrays are equal; they broadcast.
shape = ops.common_size(size(a), size(b));
a = ops.expand(a, shape);
b = ops.expand(b, shape);
y = strcmp(a, b) | (cellfun('isempty', a) & cellfun('isempty', b));
end
