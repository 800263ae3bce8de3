function found = nearest_place(at, rounding)
% The whole numbers nearest to places; what is a millionth from the middle counts as the middle.
at = double(at);
switch rounding
    case 'floor'
        found = floor(at);
    case 'ceil'
        found = ceil(at);
    case 'round_prefer_ceil'
        found = floor(at + 0.500001);
    otherwise
        found = ceil(at - 0.500001);
end
end
