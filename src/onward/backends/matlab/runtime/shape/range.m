function y = range(first, last, step, kind)
% Numbers from the first one to before the last one, as a column.
first = cast(first, kind);
last = cast(last, kind);
step = cast(step, kind);
count = max(ceil((double(last) - double(first)) / double(step)), 0);
if any(strcmp(kind, {'single', 'double'}))
    y = cast(double(first) + (0:count - 1)' * double(step), kind);
else
    y = first + cast((0:count - 1)', kind) * step;
end
end
