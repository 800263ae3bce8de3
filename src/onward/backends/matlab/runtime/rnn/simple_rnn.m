function [y, h] = simple_rnn(x, w, r, b, lengths, h, reverse, clip, names, numbers)
% A plain recurrent layer over I x B x T: y is H x B x directions x T, the last state is H x B x directions.
if nargin < 10
    names = repmat({'tanh'}, 1, size(w, 3));
    numbers = zeros(2, numel(names));
end
for d = size(w, 3):-1:1
    f = ops.recurrent_function(names{d}, numbers(:, d), clip);
    own = r(:, :, d).';
    steps{d} = @(gates, kept) {f(gates + own * kept{1})};
end
if ~isempty(b)
    half = size(b, 1) / 2;
    b = b(1:half, :) + b(half + 1:end, :);
end
[y, states] = ops.over_time(x, w, b, lengths, {h}, reverse, size(r, 1), steps);
h = states{1};
end
