function y = lowest(x)
% What is less than, or equal to, all numbers of a class.
if isfloat(x)
    y = -Inf;
elseif islogical(x)
    y = false;
else
    y = intmin(class(x));
end
end
