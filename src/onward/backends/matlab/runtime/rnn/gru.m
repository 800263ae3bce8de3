function [y, h] = gru(x, w, r, b, lengths, h, reverse, clip, reset_after, names, numbers)
% A GRU over I x B x T: y is H x B x directions x T, the last state is H x B x directions.
% Gates: update, reset, hidden. With reset_after, the reset gate acts on the projected state, else on the state.
if nargin < 11
    names = repmat({'sigmoid', 'tanh'}, 1, size(w, 3));
    numbers = zeros(2, numel(names));
end
n = size(r, 1);
second = zeros(3 * n, size(w, 3), class(r));
if ~isempty(b)
    second = b(3 * n + 1:end, :);
    b = b(1:3 * n, :);
end
for d = size(w, 3):-1:1
    f = ops.recurrent_function(names{2 * d - 1}, numbers(:, 2 * d - 1), clip);
    g = ops.recurrent_function(names{2 * d}, numbers(:, 2 * d), clip);
    own = r(:, :, d).';
    bias = second(:, d);
    steps{d} = @(gates, kept) {ops.gru_step(gates, kept{1}, own, bias, f, g, reset_after)};
end
[y, states] = ops.over_time(x, w, b, lengths, {h}, reverse, n, steps);
h = states{1};
end
