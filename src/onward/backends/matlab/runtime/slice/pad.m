function y = pad(x, before, after, mode, value)
% An array with a border; where it is negative, elements are cut off. Dimensions are MATLAB's.
rank = numel(before);
at = repmat({':'}, 1, max(rank, 2));
for dim = find(before < 0 | after < 0)
    n = size(x, dim);
    at{dim} = 1 + max(-before(dim), 0):n - max(-after(dim), 0);
end
if any(before < 0 | after < 0)
    x = x(at{:});
    before = max(before, 0);
    after = max(after, 0);
end
own = [size(x), ones(1, rank - ndims(x))];
if strcmp(mode, 'constant')
    shape = own;
    shape(1:rank) = own(1:rank) + before + after;
    if iscell(x)
        y = repmat({''}, shape);
    elseif islogical(x)
        y = repmat(logical(value), shape);
    else
        y = repmat(cast(value, class(x)), shape);
    end
    for dim = 1:max(rank, 2)
        if dim <= rank
            at{dim} = before(dim) + (1:own(dim));
        else
            at{dim} = 1:own(dim);
        end
    end
    y(at{:}) = x;
    return
end
at = repmat({':'}, 1, max(rank, 2));
for dim = 1:rank
    n = own(dim);
    place = 1 - before(dim):n + after(dim);
    switch mode
        case 'edge'
            at{dim} = min(max(place, 1), n);
        case 'reflect'
            period = max(2 * (n - 1), 1);
            place = mod(place - 1, period);
            at{dim} = 1 + min(place, period - place) * (n > 1);
        otherwise
            at{dim} = mod(place - 1, n) + 1;
    end
end
y = x(at{:});
end
