function y = softplus(x)
% log(1 + exp(x)), also where exp(x) is too large.
y = ops.relu(x) + log1p(exp(-abs(x)));
end
