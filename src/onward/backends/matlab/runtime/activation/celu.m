function y = celu(x, alpha)
% x, or alpha * (exp(x / alpha) - 1) where it is negative.
y = x;
low = x < 0;
y(low) = alpha * expm1(x(low) / alpha);
end
