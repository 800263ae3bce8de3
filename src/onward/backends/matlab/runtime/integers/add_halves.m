function y = add_halves(a, b)
% A sum of integers of 64 bits modulo 2^64, by halves.
shape = size(a);
p = reshape(double(typecast(a(:), 'uint32')), 2, []);
q = reshape(double(typecast(b(:), 'uint32')), 2, []);
low = p(1, :) + q(1, :);
high = p(2, :) + q(2, :) + floor(low / 2 ^ 32);
parts = uint32([mod(low, 2 ^ 32); mod(high, 2 ^ 32)]);
y = reshape(typecast(parts(:), class(a)), shape);
end
