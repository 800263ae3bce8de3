function y = space_to_depth(x, b, mode)
% Blocks of b by b pixels as channels.
[w, h, c, n] = size(x);
x = reshape(x, [b, w / b, b, h / b, c, n]);
if strcmp(mode, 'DCR')
    y = permute(x, [2, 4, 5, 1, 3, 6]);
else
    y = permute(x, [2, 4, 1, 3, 5, 6]);
end
y = reshape(y, [w / b, h / b, c * b * b, n]);
end
