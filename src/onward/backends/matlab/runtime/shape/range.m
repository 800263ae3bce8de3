function y = range(first, last, step, kind)
% Numbers from the first one to before the last one, as a column.
count = max(ceil((double(last) - double(first)) / double(step)), 0);
if any(strcmp(kind, {'single', 'double'}))
    y = cast(double(first) + (0:count - 1)' * double(step), kind);
else
    y = cast(first, kind) + cast((0:count - 1)', kind) * cast(step, kind);
end
end
