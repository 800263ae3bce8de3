function [y, h, c] = lstm(x, w, r, b, lengths, h, c, peepholes, reverse, clip, coupled, names, numbers)
% An LSTM over I x B x T: y is H x B x directions x T, the last states are H x B x directions.
% Gates: input, output, forget, cell. With coupled, the forget gate is one less the input gate.
if nargin < 13
    names = repmat({'sigmoid', 'tanh', 'tanh'}, 1, size(w, 3));
    numbers = zeros(2, numel(names));
end
states = {h, c};
for d = size(w, 3):-1:1
    f = ops.recurrent_function(names{3 * d - 2}, numbers(:, 3 * d - 2), clip);
    g = ops.recurrent_function(names{3 * d - 1}, numbers(:, 3 * d - 1), clip);
    last = ops.recurrent_function(names{3 * d}, numbers(:, 3 * d), []);
    own = r(:, :, d).';
    peeps = [];
    if ~isempty(peepholes)
        peeps = reshape(peepholes(:, d), [], 3);
    end
    steps{d} = @(gates, kept) ops.lstm_step(gates + own * kept{1}, kept{2}, peeps, f, g, last, coupled);
end
if ~isempty(b)
    half = size(b, 1) / 2;
    b = b(1:half, :) + b(half + 1:end, :);
end
[y, states] = ops.over_time(x, w, b, lengths, states, reverse, size(r, 1), steps);
h = states{1};
c = states{2};
end
