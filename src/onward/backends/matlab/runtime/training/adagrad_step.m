function [x, squares] = adagrad_step(rate, count, x, gradient, squares, decay, epsilon, norm)
% One step of Adagrad: the new array, and the sum of squared gradients.
gradient = norm * x + gradient;
squares = squares + gradient .* gradient;
rate = cast(rate / (1 + double(count) * decay), class(x));
x = x - rate * gradient ./ (sqrt(squares) + epsilon);
end
