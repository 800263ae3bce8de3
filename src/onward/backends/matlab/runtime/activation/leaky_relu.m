function y = leaky_relu(x, alpha)
% x, or a part of it where it is negative.
y = x;
low = x < 0;
y(low) = alpha * x(low);
end
