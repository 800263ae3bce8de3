function y = combined(y, place, updates, reduction)
% Elements of an array at linear indices replaced by updates, or combined with them; an index may come several times.
if strcmp(reduction, 'none')
    y(place(:)) = updates(:);
    return
end
place = place(:);
updates = updates(:);
left = true(size(place));
while any(left)
    now = find(left);
    [~, first] = unique(place(now), 'first');
    now = now(first);
    left(now) = false;
    old = y(place(now));
    new = reshape(updates(now), size(old));
    switch reduction
        case 'add'
            if islogical(y)
                new = old | new;
            elseif isinteger(y)
                new = ops.add_integers(old, new);
            else
                new = old + new;
            end
        case 'mul'
            if islogical(y)
                new = old & new;
            elseif isinteger(y)
                new = ops.multiply_integers(old, new);
            else
                new = old .* new;
            end
        case 'max'
            if isfloat(y)
                new = ops.maximum(old, new);
            else
                new = cast(max(old, new), class(y));
            end
        otherwise
            if isfloat(y)
                new = ops.minimum(old, new);
            else
                new = cast(min(old, new), class(y));
            end
    end
    y(place(now)) = new;
end
end
