function y = softmax_zero(x)
% Softmax along the first dimension in which scores of zero stay zero.
top = max(x, [], 1);
is_zero = abs(x) <= 1e-7;
powers = exp(x - top);
powers(is_zero) = 0;
y = powers;
small = x .* exp(-top);
y(is_zero) = small(is_zero);
y = y ./ sum(powers, 1);
end
