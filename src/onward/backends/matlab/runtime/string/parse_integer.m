function y = parse_integer(text, kind)
% A whole number of any number of digits, of which a class keeps the low bits.
digits = regexprep(text, '^[+-]', '');
y = uint64(0);
for first = 1:15:numel(digits)
    part = digits(first:min(first + 14, numel(digits)));
    y = ops.add_integers(ops.multiply_integers(y, uint64(10 ^ numel(part))), uint64(str2double(part)));
end
if text(1) == '-'
    y = ops.subtract_integers(uint64(0), y);
end
y = ops.to_integer(y, kind);
end
