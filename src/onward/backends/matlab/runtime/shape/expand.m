function y = expand(x, shape)
% An array repeated along dimensions of 1, to the size that it broadcasts to with this one.
own = size(x);
rank = max(numel(own), numel(shape));
own = [own, ones(1, rank - numel(own))];
shape = [shape, ones(1, rank - numel(shape))];
if isequal(own, shape)
    y = x;
    return
end
if any(own ~= shape & own ~= 1 & shape ~= 1)
    error('onward:size', 'an array of %s does not broadcast to %s', mat2str(own), mat2str(shape));
end
times = ones(1, rank);
times(own == 1) = shape(own == 1);
y = repmat(x, times);
end
