function y = indicator(index, count)
% 1 at the place that each number tells, along a new first dimension of so many; 0 tells none.
y = bsxfun(@eq, (1:count)', double(index(:)'));
y = reshape(y, [count, size(index)]);
end
