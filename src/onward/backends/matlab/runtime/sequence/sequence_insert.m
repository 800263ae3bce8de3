function y = sequence_insert(sequence, item, position)
% A sequence with one more element; the position counts from 0, from the end where it is negative.
count = numel(sequence);
at = double(position) + count * (position < 0);
y = [reshape(sequence(1:at), 1, []), {item}, reshape(sequence(at + 1:end), 1, [])];
end
