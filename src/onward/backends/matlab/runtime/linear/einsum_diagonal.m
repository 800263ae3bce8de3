function [x, term] = einsum_diagonal(x, term)
% The diagonal of dimensions that have the same letter.
k = 1;
while k <= numel(term)
    twin = find(term(k + 1:end) == term(k), 1) + k;
    if isempty(twin)
        k = k + 1;
        continue
    end
    shape = [size(x), ones(1, numel(term) - ndims(x))];
    rest = setdiff(1:numel(term), [k, twin]);
    n = shape(k);
    x = reshape(permute(x, [k, twin, rest]), n * n, []);
    x = reshape(x(1:n + 1:n * n, :), [n, shape(rest), 1]);
    term = term([k, rest]);
    k = 1;
end
end
