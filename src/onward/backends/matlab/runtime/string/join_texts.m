function y = join_texts(a, b)
% Each text of a cell array followed by that of another; they broadcast.
shape = ops.common_size(size(a), size(b));
y = cellfun(@horzcat, ops.expand(a, shape), ops.expand(b, shape), 'UniformOutput', false);
end
