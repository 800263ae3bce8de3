function y = depth_to_space(x, b, mode)
% Channels as blocks of b by b pixels.
[w, h, c, n] = size(x);
c = c / (b * b);
if strcmp(mode, 'DCR')
    y = permute(reshape(x, [w, h, c, b, b, n]), [4, 1, 5, 2, 3, 6]);
else
    y = permute(reshape(x, [w, h, b, b, c, n]), [3, 1, 4, 2, 5, 6]);
end
y = reshape(y, [w * b, h * b, c, n]);
end
