function [y, term] = einsum_pair(a, s, b, t, kept)
% The product of two arrays, summed over the letters that both have and nobody needs any more.
[a, s] = ops.einsum_sum(a, s, [t, kept]);
[b, t] = ops.einsum_sum(b, t, [s, kept]);
both = s(ismember(s, t));
over = both(~ismember(both, kept));
batch = both(ismember(both, kept));
own = s(~ismember(s, t));
other = t(~ismember(t, s));
if isempty(own) || isempty(other) || isempty(over)
    term = [own, other, over, batch];
    a = ops.einsum_arrange(a, s, term);
    b = ops.einsum_arrange(b, t, term);
    if isfloat(a)
        y = a .* b;
    else
        y = ops.multiply_integers(a, b);
    end
    [y, term] = ops.einsum_sum(y, term, kept);
    return
end
a = ops.einsum_arrange(a, s, [over, own, batch]);
b = ops.einsum_arrange(b, t, [other, over, batch]);
shape = arrayfun(@(k) size(b, k), 1:numel(other));
shape = [shape, arrayfun(@(k) size(a, k), numel(over) + (1:numel(own) + numel(batch)))];
count = prod(shape(1:numel(other)));
rows = prod(shape(numel(other) + (1:numel(own))));
pages = prod(shape(numel(other) + numel(own) + 1:end));
terms = numel(a) / max(rows * pages, 1);
a = reshape(a, [terms, rows, pages]);
b = reshape(b, [count, terms, pages]);
if isfloat(a)
    y = ops.matmul(a, b);
else
    y = ops.matmul_integers(a, b);
end
y = reshape(y, [shape, 1]);
term = [other, own, batch];
end
