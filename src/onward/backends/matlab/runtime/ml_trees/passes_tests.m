function passed = passes_tests(value, threshold, test, sets)
% Whether values pass tests that differ from node to node, by number from 0: <=, <, >=, >, ==, ~=, in a set.
%
% For the last, the threshold is the number, from 0, of the column of sets that lists the members.
names = {'<=', '<', '>=', '>', '==', '~='};
passed = false(size(value));
for k = 1:numel(names)
    at = test == k - 1;
    passed(at) = ops.passes_test(value(at), threshold(at), names{k});
end
at = find(test == 6);
if ~isempty(at)
    members = sets(:, double(threshold(at)) + 1);
    passed(at) = any(bsxfun(@eq, members, reshape(value(at), 1, [])), 1);
end
end
