function [x, momentum] = momentum_step(rate, count, x, gradient, momentum, alpha, beta, norm, is_nesterov)
% One step with momentum: the new array and its momentum. At the first step, the gradient counts in full.
gradient = norm * x + gradient;
if count > 0
    momentum = alpha * momentum + beta * gradient;
else
    momentum = alpha * momentum + gradient;
end
direction = momentum;
if is_nesterov
    direction = gradient + alpha * momentum;
end
x = x - cast(rate, class(x)) * direction;
end
