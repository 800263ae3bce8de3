function y = multinomial(x, drawn, kind)
% Classes by the logarithms of their chances, samples x cases, one for each number that was drawn between 0 and 1.
x = double(x);
up_to = cumsum(exp(x - max(x, [], 1)), 1);
up_to = up_to ./ up_to(end, :);
y = zeros(size(drawn), kind);
for k = 1:size(x, 2)
    y(:, k) = sum(drawn(:, k) >= up_to(1:end - 1, k)', 2);
end
end
