function y = slice(x, starts, ends, axes, steps, rank)
% A part of an array, as ONNX says it: axes and bounds are counted from 0, and from the end where they are negative.
starts = double(starts(:)');
ends = double(ends(:)');
axes = double(axes(:)');
axes = axes(1:numel(starts));
steps = double(steps(:)') .* ones(1, numel(starts));
at = repmat({':'}, 1, max(rank, 2));
for k = 1:numel(starts)
    dim = rank - mod(axes(k), rank);
    n = size(x, dim);
    first = starts(k) + n * (starts(k) < 0);
    last = ends(k) + n * (ends(k) < 0);
    if steps(k) > 0
        at{dim} = min(max(first, 0), n) + 1:steps(k):min(max(last, 0), n);
    else
        at{dim} = min(max(first, 0), n - 1) + 1:steps(k):min(max(last, -1), n - 1) + 2;
    end
end
y = x(at{:});
end
