function y = total_of_integers(x, dims)
% The sum of integers along dimensions, which keeps the low bits where it is too large.
y = x;
for dim = dims
    if sum(abs(double(y(:)))) < 2 ^ 53
        y = ops.to_integer(sum(double(y), dim), class(x));
    else
        at = repmat({':'}, 1, max(ndims(y), dim));
        at{dim} = 1;
        whole = y(at{:});
        for k = 2:size(y, dim)
            at{dim} = k;
            whole = ops.add_integers(whole, y(at{:}));
        end
        y = whole;
    end
end
end
