function y = float32(x)
% A number rounded to single precision.
y = double(single(x));
end
