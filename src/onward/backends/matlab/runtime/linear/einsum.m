function y = einsum(equation, varargin)
% The sum of products that an equation such as 'ij,jk->ik' says; its letters are in the order of the file.
sides = strsplit(equation, '->');
terms = cellfun(@fliplr, strsplit(sides{1}, ','), 'UniformOutput', false);
wanted = fliplr(sides{2});
arrays = ops.einsum_operands(terms, varargin);
for k = 1:numel(terms)
    [arrays{k}, terms{k}] = ops.einsum_diagonal(arrays{k}, terms{k});
end
y = arrays{1};
term = terms{1};
for k = 2:numel(terms)
    [y, term] = ops.einsum_pair(y, term, arrays{k}, terms{k}, [wanted, terms{k + 1:end}]);
end
[y, term] = ops.einsum_sum(y, term, wanted);
y = ops.einsum_arrange(y, term, wanted);
end
