function y = look_up(x, keys, values, default)
% The value of each key, or the default. NaN can be a key.
if iscell(values)
    y = repmat(default, size(x));
else
    y = repmat(cast(default, class(values)), size(x));
end
[is_known, place] = ismember(x, keys);
if isfloat(keys) && any(isnan(keys))
    is_known = is_known | isnan(x);
    place(isnan(x)) = find(isnan(keys));
end
y(is_known) = values(place(is_known));
end
