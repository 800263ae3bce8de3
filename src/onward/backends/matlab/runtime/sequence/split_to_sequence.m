function parts = split_to_sequence(x, lengths, dim)
% Parts of an array along a dimension: of these lengths, or all of one length but the last, which may be shorter.
count = size(x, dim);
lengths = double(lengths(:)');
if isscalar(lengths) && lengths < count
    first = 0:lengths:count - 1;
    lengths = min(lengths, count - first);
elseif isscalar(lengths)
    first = 0;
    lengths = count;
else
    first = cumsum(lengths) - lengths;
end
at = repmat({':'}, 1, max(ndims(x), dim));
parts = cell(1, numel(lengths));
for k = 1:numel(lengths)
    at{dim} = first(k) + 1:first(k) + lengths(k);
    parts{k} = x(at{:});
end
end
