function [x, term] = einsum_sum(x, term, kept)
% Sums over the dimensions whose letters nobody needs any more.
is_kept = ismember(term, kept);
dims = find(~is_kept);
if isempty(dims)
    return
end
shape = [size(x), ones(1, numel(term) - ndims(x))];
if isfloat(x)
    x = ops.total(x, dims);
else
    x = ops.total_of_integers(x, dims);
end
shape = shape(1:numel(term));
x = reshape(x, [shape(is_kept), 1, 1]);
term = term(is_kept);
end
