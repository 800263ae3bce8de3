function y = mean(x, dims)
% The mean along dimensions, added up in double precision.
y = x;
count = 1;
for dim = dims
    count = count * size(y, dim);
    y = sum(y, dim, 'double');
end
y = cast(y / count, class(x));
end
