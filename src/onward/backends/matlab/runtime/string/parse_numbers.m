function y = parse_numbers(x, kind)
% Texts such as 3.14, 1e-5 or -INF as numbers of a class; whole numbers keep their low bits.
is_float = any(strcmp(kind, {'single', 'double'}));
y = zeros(size(x), kind);
for k = 1:numel(x)
    text = strtrim(x{k});
    if ~is_float && ~isempty(regexp(text, '^[+-]?[0-9]+$', 'once'))
        y(k) = ops.parse_integer(text, kind);
        continue
    end
    if isempty(regexp(text, '^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$', 'once')) ...
            && ~any(strcmpi(regexprep(text, '^[+-]', ''), {'inf', 'infinity', 'nan'}))
        error('onward:text', '%s is no number', text);
    end
    number = sscanf(regexprep(text, '[iI]nfinity', 'Inf'), '%f', 1);
    if is_float
        y(k) = number;
    else
        y(k) = ops.to_integer(number, kind);
    end
end
end
