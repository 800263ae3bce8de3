function item = sequence_at(sequence, position)
% An element of a sequence; the position counts from 0, from the end where it is negative.
item = sequence{double(position) + numel(sequence) * (position < 0) + 1};
end
