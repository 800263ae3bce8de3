function [x, average, squares] = adam_step(rate, count, x, gradient, average, squares, alpha, beta, epsilon, norm, norm_after)
% One step of Adam: the new array, the average of its gradients, and that of their squares.
gradient = norm * x + gradient;
average = alpha * average + (1 - alpha) * gradient;
squares = beta * squares + (1 - beta) * gradient .* gradient;
if count > 0
    steps = double(count);
    rate = rate * sqrt(1 - beta ^ steps) / (1 - alpha ^ steps);
end
x = x - cast(rate, class(x)) * average ./ (sqrt(squares) + epsilon);
x = (1 - norm_after) * x;
end
