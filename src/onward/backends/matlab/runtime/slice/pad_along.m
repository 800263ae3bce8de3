function y = pad_along(x, widths, axes, rank, mode, value)
% An array with a border along axes that the file counts from 0: widths are those before all, then after all.
widths = double(widths(:)');
axes = double(axes(:)');
before = zeros(1, rank);
after = zeros(1, rank);
dims = rank - mod(axes, rank);
before(dims) = widths(1:numel(axes));
after(dims) = widths(numel(axes) + 1:end);
y = ops.pad(x, before, after, mode, value);
end
