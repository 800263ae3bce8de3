function y = sigmoid(x)
% 1 / (1 + exp(-x)).
y = 1 ./ (1 + exp(-x));
end
