function varargout = split(x, dim, lengths)
% Parts of an array along a dimension, of these lengths; a number says how many parts there are.
n = size(x, dim);
if isscalar(lengths) && nargout > 1
    part = ceil(n / lengths);
    lengths = [repmat(part, 1, lengths - 1), n - part * (lengths - 1)];
end
lengths = double(lengths(:)');
at = repmat({':'}, 1, max(ndims(x), dim));
start = 0;
varargout = cell(1, numel(lengths));
for k = 1:numel(lengths)
    at{dim} = start + (1:lengths(k));
    varargout{k} = x(at{:});
    start = start + lengths(k);
end
end
