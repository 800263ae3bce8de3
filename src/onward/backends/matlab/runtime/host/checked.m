function x = checked(x, name, shape, kind)
% An input in the class that the network computes with, which has to hold its values, and of the sizes that it takes;
% a size of NaN may be any.
own = [size(x), ones(1, numel(shape) - ndims(x))];
if numel(own) ~= numel(shape) || any(own ~= shape & ~isnan(shape))
    wanted = strrep(sprintf(' x %d', shape), 'NaN', 'any');
    given = sprintf(' x %d', size(x));
    error('onward:size', '%s has the sizes %s; the network takes %s: those of the file in reverse', name, given(4:end), wanted(4:end));
end
if isa(x, kind)
    return
end
given = x;
if ~isnumeric(x) && ~islogical(x)
    error('onward:class', '%s is of the class %s; the network takes %s', name, class(x), kind);
end
x = cast(x, kind);
if ~any(strcmp(kind, {'single', 'double'})) && ~isequal(cast(x, class(given)), given)
    error('onward:class', '%s has values that the class %s does not hold', name, kind);
end
end
