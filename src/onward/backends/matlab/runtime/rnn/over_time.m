function [y, last] = over_time(x, w, b, lengths, initial, reverse, hidden, steps)
% What the steps of each direction make of the inputs x, I x B x T, and the states after the last one.
% Where a sequence has ended, its state stays and its output is zero. An empty one has zeros for a last state.
[inputs, batch, times] = size(x);
directions = numel(steps);
y = zeros([hidden, batch, directions, times], class(x));
last = cell(size(initial));
last(:) = {zeros([hidden, batch, directions], class(x))};
lengths = double(lengths(:)');
for d = 1:directions
    gates = w(:, :, d).' * reshape(x, inputs, batch * times);
    if ~isempty(b)
        gates = gates + b(:, d);
    end
    gates = reshape(gates, size(w, 2), batch, times);
    states = cell(size(initial));
    for k = 1:numel(states)
        states{k} = zeros([hidden, batch], class(x));
        if ~isempty(initial{k})
            states{k} = reshape(initial{k}(:, :, d), hidden, batch);
        end
    end
    order = 1:times;
    if reverse(d)
        order = times:-1:1;
    end
    for t = order
        next = steps{d}(gates(:, :, t), states);
        y(:, :, d, t) = next{1};
        ended = find(lengths < t);
        for k = 1:numel(states) * ~isempty(ended)
            next{k}(:, ended) = states{k}(:, ended);
        end
        y(:, ended, d, t) = 0;
        states = next;
    end
    for k = 1:numel(states)
        states{k}(:, lengths == 0) = 0;
        last{k}(:, :, d) = states{k};
    end
end
end
