function y = local_response_norm(x, size_, alpha, beta, bias, dim)
% Each element divided by what the channels around it are.
rank = max(ndims(x), dim);
low = floor((size_ - 1) / 2);
before = zeros(1, rank);
after = before;
before(dim) = low;
after(dim) = size_ - 1 - low;
squares = ops.pad(x .^ 2, before, after, 'constant', 0);
n = size(x, dim);
at = repmat({':'}, 1, rank);
total = 0;
for k = 0:size_ - 1
    at{dim} = k + (1:n);
    total = total + squares(at{:});
end
y = x ./ (bias + alpha / size_ * total) .^ beta;
end
