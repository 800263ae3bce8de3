function y = reverse_sequence(x, lengths, time, batch)
% An array whose first elements along a dimension are turned round, as many as each element of another one says.
y = x;
rank = max([ndims(x), time, batch]);
for k = 1:numel(lengths)
    n = double(lengths(k));
    at = repmat({':'}, 1, rank);
    at{batch} = k;
    from = at;
    at{time} = 1:n;
    from{time} = n:-1:1;
    y(at{:}) = x(from{:});
end
end
