function y = elu(x, alpha)
% x, or alpha * (exp(x) - 1) where it is negative.
y = x;
low = x < 0;
y(low) = alpha * expm1(x(low));
end
