function [a, b] = same_class(a, b)
% Two operands in the class of the one that is an array of integers, and of one size.
if isa(a, 'double')
    a = cast(a, class(b));
elseif isa(b, 'double')
    b = cast(b, class(a));
end
if ~isequal(size(a), size(b))
    shape = ops.common_size(size(a), size(b));
    a = ops.expand(a, shape);
    b = ops.expand(b, shape);
end
end
