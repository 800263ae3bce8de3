function y = sequence_erase(sequence, position)
% A sequence without one element; the position counts from 0, from the end where it is negative.
y = sequence;
y(double(position) + numel(y) * (position < 0) + 1) = [];
end
