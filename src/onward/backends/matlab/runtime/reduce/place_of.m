function y = place_of(x, dim, which, last)
% Where the 'max' or 'min' lies along a dimension, counted from 0: the first one, or the last one.
if islogical(x)
    x = uint8(x);
end
n = size(x, dim);
if last
    x = flip(x, dim);
end
if strcmp(which, 'max')
    [~, place] = max(x, [], dim);
else
    [~, place] = min(x, [], dim);
end
if isfloat(x) && any(isnan(x(:)))
    [missing, first] = max(isnan(x), [], dim);
    place(missing) = first(missing);
end
if last
    place = n + 1 - place;
end
y = int64(place) - 1;
end
