function f = recurrent_function(name, numbers, clip)
% An activation of recurrent layers, which may bound what it gets.
a = numbers(1);
b = numbers(2);
switch name
    case 'sigmoid'
        f = @(x) 1 ./ (1 + exp(-x));
    case 'tanh'
        f = @(x) tanh(x);
    case 'relu'
        f = @(x) ops.relu(x);
    case 'softsign'
        f = @(x) x ./ (1 + abs(x));
    case 'softplus'
        f = @(x) ops.softplus(x);
    case 'affine'
        f = @(x) a * x + b;
    case 'leakyrelu'
        f = @(x) ops.leaky_relu(x, a);
    case 'thresholdedrelu'
        f = @(x) x .* (x > a);
    case 'scaledtanh'
        f = @(x) a * tanh(b * x);
    case 'hardsigmoid'
        f = @(x) ops.hard_sigmoid(x, a, b);
    case 'elu'
        f = @(x) ops.elu(x, a);
    otherwise
        error('onward:activation', 'there is no activation %s', name);
end
if ~isempty(clip)
    whole = f;
    f = @(x) whole(ops.clip(x, -clip, clip));
end
end
