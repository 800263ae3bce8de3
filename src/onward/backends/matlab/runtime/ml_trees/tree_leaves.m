function leaf = tree_leaves(x, feature, threshold, branches, roots, varargin)
% The number of the leaf, from 0, that each column of x reaches in each tree: trees x columns.
%
% Node n of all trees together compares a feature with a threshold and goes on along one of its two branches, the
% second one if the test is passed. Leaves are the nodes from first_leaf on, and lead to themselves. All trees and
% columns go down one level at a time.
%
%   first_leaf, depth   the number of the first leaf, and of the levels
%   test                what is asked: '<=' and so on, or a number for each node: see passes_tests
%   missing             whether NaN passes the test of each node
%   sets                the members of the sets that nodes ask for, one set a column
given = struct('first_leaf', 0, 'depth', 0, 'test', '<=', 'missing', [], 'sets', []);
for k = 1:2:numel(varargin)
    given.(varargin{k}) = varargin{k + 1};
end
[features, count] = size(x);
x = reshape(x, [], 1);
feature = double(feature(:)) + 1;
branches = double(branches(:)) + 1;
node = repmat(double(roots(:)) + 1, count, 1);
before = reshape(repmat(features * (0:count - 1), numel(roots), 1), [], 1);
for level = 1:given.depth
    value = x(before + feature(node));
    if ischar(given.test)
        passed = ops.passes_test(value, threshold(node), given.test);
    else
        passed = ops.passes_tests(value, threshold(node), given.test(node), given.sets);
    end
    if ~isempty(given.missing)
        passed = passed | (given.missing(node) & isnan(value));
    end
    node = branches(2 * node - 1 + passed);
end
leaf = reshape(node - 1 - given.first_leaf, numel(roots), count);
end
