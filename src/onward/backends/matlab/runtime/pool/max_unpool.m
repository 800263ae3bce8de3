function y = max_unpool(x, place, kernel, stride, pads, wanted)
% Elements put back to where a pool took them from, among zeros.
rank = numel(kernel);
own = [size(x), ones(1, rank + 2 - ndims(x))];
shape = own;
shape(1:rank) = (own(1:rank) - 1) .* stride - pads(1:rank) - pads(rank + 1:end) + kernel;
y = zeros(shape, class(x));
y(double(place(:)) + 1) = x(:);
if ~isempty(wanted)
    wanted = ops.sizes(wanted);
    y = ops.pad(y, zeros(1, rank), wanted(1:rank) - shape(1:rank), 'constant', 0);
end
end
