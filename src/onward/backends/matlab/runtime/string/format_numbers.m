function y = format_numbers(x)
% Numbers as texts: 8 significant digits of a float.
y = cell(size(x));
for k = 1:numel(x)
    number = x(k);
    if isa(number, 'uint64') && number > intmax('int64')
        tens = ops.divide_integers(number, uint64(10));
        y{k} = sprintf('%d%d', tens, number - tens * 10);
    elseif ~isfloat(number)
        y{k} = sprintf('%d', number);
    elseif isnan(number)
        y{k} = 'NaN';
    elseif isinf(number)
        y{k} = strrep(sprintf('%dINF', sign(number)), '1', '');
    else
        y{k} = sprintf('%.8g', double(number));
    end
end
end
