function states = lstm_step(gates, c, peepholes, f, g, last, coupled)
% The states of an LSTM after a step, of its gates and the state of its cells.
n = size(c, 1);
before = gates(1:n, :);
forget = gates(2 * n + 1:3 * n, :);
if ~isempty(peepholes)
    before = before + peepholes(:, 1) .* c;
    forget = forget + peepholes(:, 3) .* c;
end
before = f(before);
if coupled
    forget = 1 - before;
else
    forget = f(forget);
end
c = forget .* c + before .* g(gates(3 * n + 1:end, :));
shown = gates(n + 1:2 * n, :);
if ~isempty(peepholes)
    shown = shown + peepholes(:, 2) .* c;
end
states = {f(shown) .* last(c), c};
end
