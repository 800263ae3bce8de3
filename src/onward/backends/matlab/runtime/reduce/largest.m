function y = largest(x, dims)
% The largest element along dimensions; NaN where there is one. Of nothing it is the least number.
y = ops.extreme(x, dims, 'max');
end
