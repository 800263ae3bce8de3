function y = to_integer(x, kind)
% Numbers as integers of a class: floats without their fraction, and of what is too large the low bits.
if islogical(x)
    y = cast(x, kind);
elseif isinteger(x)
    if any(strcmp(kind, {'int64', 'uint64'}))
        if any(strcmp(class(x), {'int64', 'uint64'}))
            y = reshape(typecast(x(:), kind), size(x));
        else
            y = int64(x);
            y = reshape(typecast(y(:), kind), size(x));
        end
    elseif strcmp(class(x), 'uint64')
        y = ops.wrap(x, kind);
    else
        y = ops.wrap(int64(x), kind);
    end
else
    whole = fix(x);
    whole(isnan(whole)) = 0;
    if strcmp(kind, 'uint64') && any(whole(:) < 0)
        y = cast(whole, kind);
        low = whole < 0;
        y(low) = typecast(int64(whole(low)), kind);
    elseif any(strcmp(kind, {'int64', 'uint64'}))
        y = cast(whole, kind);
    elseif all(abs(whole(:)) < 2 ^ 53)
        y = ops.wrap(int64(whole), kind);
    else
        y = cast(whole, kind);
    end
end
end
