function y = total(x, dims)
% The sum along dimensions, added up in double precision.
y = x;
if ~isempty(dims)
    for dim = dims
        y = sum(y, dim, 'double');
    end
    y = cast(y, class(x));
end
end
