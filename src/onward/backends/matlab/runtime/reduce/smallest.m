function y = smallest(x, dims)
% The smallest element along dimensions; NaN where there is one. Of nothing it is the largest number.
y = ops.extreme(x, dims, 'min');
end
