function y = change_letters(x, letters, others)
% The texts with some letters changed to others, both as codes of UTF-16.
y = x;
for k = find(~cellfun('isempty', x(:)'))
    codes = typecast(unicode2native(x{k}, 'UTF-16LE'), 'uint16');
    [is_known, place] = ismember(codes, letters(:)');
    codes(is_known) = others(place(is_known));
    y{k} = native2unicode(typecast(codes, 'uint8'), 'UTF-16LE');
end
end
