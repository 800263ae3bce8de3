function y = center_crop_pad(x, wanted, dims)
% The middle of an array, or an array in the middle of zeros, so that dimensions have the sizes that are wanted.
rank = max(ndims(x), max(dims));
before = zeros(1, rank);
after = zeros(1, rank);
wanted = double(wanted(:)');
for k = 1:numel(dims)
    own = size(x, dims(k));
    missing = wanted(k) - own;
    if missing >= 0
        before(dims(k)) = floor(missing / 2);
        after(dims(k)) = missing - before(dims(k));
    else
        before(dims(k)) = -floor(-missing / 2);
        after(dims(k)) = missing - before(dims(k));
    end
end
y = ops.pad(x, before, after, 'constant', 0);
end
