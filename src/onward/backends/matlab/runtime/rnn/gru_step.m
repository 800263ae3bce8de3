function h = gru_step(gates, h, r, bias, f, g, reset_after)
% The state of a GRU after a step.
n = size(h, 1);
two = 1:2 * n;
rest = 2 * n + 1:3 * n;
if reset_after
    ahead = r * h + bias;
    chosen = f(gates(two, :) + ahead(two, :));
    hidden = chosen(n + 1:end, :) .* ahead(rest, :);
else
    chosen = f(gates(two, :) + (r(two, :) * h + bias(two)));
    hidden = r(rest, :) * (chosen(n + 1:end, :) .* h) + bias(rest);
end
update = chosen(1:n, :);
h = (1 - update) .* g(gates(rest, :) + hidden) + update .* h;
end
