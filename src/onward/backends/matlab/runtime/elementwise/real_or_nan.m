function y = real_or_nan(x)
% What of the values is real; NaN in place of the others.
y = real(x);
if ~isreal(x)
    y(imag(x) ~= 0) = NaN;
end
end
