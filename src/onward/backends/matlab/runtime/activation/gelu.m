function y = gelu(x)
% x times the probability of a normal number to be less than it.
y = 0.5 * x .* (1 + erf(x * sqrt(0.5)));
end
