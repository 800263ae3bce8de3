function y = shaped(x, shape, own, keep_zeros)
% An array with another shape, of which -1 follows from the rest, and 0 stands for the size that the array has.
shape = double(shape(:)');
if ~keep_zeros
    for k = find(shape == 0)
        shape(k) = own(k);
    end
end
open = find(shape == -1);
if ~isempty(open)
    rest = prod(shape([1:open - 1, open + 1:end]));
    shape(open) = numel(x) / max(rest, 1);
end
y = reshape(x, ops.sizes(shape));
end
