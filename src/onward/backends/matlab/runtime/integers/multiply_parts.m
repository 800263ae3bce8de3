function y = multiply_parts(a, b)
% A product of integers of 64 bits modulo 2^64, by parts of 16 bits.
shape = size(a);
p = reshape(double(typecast(a(:), 'uint16')), 4, []);
q = reshape(double(typecast(b(:), 'uint16')), 4, []);
parts = zeros(4, size(p, 2));
carry = zeros(1, size(p, 2));
for k = 1:4
    part = carry;
    for m = 1:k
        part = part + p(m, :) .* q(k - m + 1, :);
    end
    parts(k, :) = mod(part, 2 ^ 16);
    carry = floor(part / 2 ^ 16);
end
parts = uint16(parts);
y = reshape(typecast(parts(:), class(a)), shape);
end
