function y = bit_cast(x, kind)
% The bits of numbers read as those of another class, of the same width.
y = reshape(typecast(x(:), kind), size(x));
end
