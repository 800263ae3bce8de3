function y = where(test, yes, no)
% Values of one array where a test holds, else of another; all of them broadcast.
shape = ops.common_size(size(test), size(yes), size(no));
test = ops.expand(test, shape);
y = ops.expand(no, shape);
if isscalar(yes)
    y(test) = yes;
else
    yes = ops.expand(yes, shape);
    y(test) = yes(test);
end
end
