function y = hard_sigmoid(x, alpha, beta)
% A line between 0 and 1.
y = ops.clip(alpha * x + beta, 0, 1);
end
