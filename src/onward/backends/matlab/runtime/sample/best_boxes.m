function kept = best_boxes(low, high, most, overlap)
% Which of some boxes, best first, overlap no box before them that is kept; so many of them at most.
overlap = cast(overlap, class(low));
area = prod(high - low, 1);
left = 1:size(low, 2);
kept = zeros(1, 0);
while ~isempty(left) && numel(kept) < most
    k = left(1);
    kept(end + 1) = k;
    left = left(2:end);
    side = max(min(high(:, left), high(:, k)) - max(low(:, left), low(:, k)), 0);
    common = side(1, :) .* side(2, :);
    whole = area(left) + area(k) - common;
    left = left(~(common > 0 & whole > 0 & common ./ whole > overlap));
end
end
