function parts = parts_of(text, delimiter, limit)
% The parts of a text between delimiters, or between white space; at most so many ends are looked for.
if isempty(delimiter)
    [first, last] = regexp(text, '[\x{9}-\x{D}\x{1C}-\x{20}]+');
    if ~isempty(last) && last(end) == numel(text)
        text = text(1:first(end) - 1);
    end
else
    first = strfind(text, delimiter);
    last = first + numel(delimiter) - 1;
end
at = 1;
parts = {};
if isempty(delimiter) && ~isempty(first) && first(1) == 1
    at = last(1) + 1;
end
for k = 1:numel(first)
    if first(k) >= at && first(k) <= numel(text) && numel(parts) < limit
        parts{end + 1, 1} = text(at:first(k) - 1);
        at = last(k) + 1;
    end
end
if ~isempty(text) && (at <= numel(text) || ~isempty(delimiter))
    parts{end + 1, 1} = text(at:end);
end
end
