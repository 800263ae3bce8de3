function [parts, counts] = split_text(x, delimiter, limit)
% The parts of each text along a new first dimension, filled up with empty texts, and how many there are.
%
% Without a delimiter, texts are split at white space, and none is left around them. An empty text has no parts.
if nargin < 3
    limit = Inf;
end
found = cellfun(@(text) ops.parts_of(text, delimiter, limit), x(:)', 'UniformOutput', false);
counts = int64(reshape(cellfun('length', found), size(x)));
parts = repmat({''}, max([0; double(counts(:))]), numel(x));
for k = 1:numel(found)
    parts(1:numel(found{k}), k) = found{k};
end
parts = reshape(parts, [size(parts, 1), size(x)]);
end
