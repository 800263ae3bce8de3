function y = non_max_suppression(boxes, scores, most, overlap, least, is_centered)
% The boxes of each class that overlap no better one, best first: image, class and box, counted from 0.
[low, high] = ops.box_corners(boxes, is_centered);
most = min(double(most), size(boxes, 2));
y = zeros(3, 0, 'int64');
for image = 1:size(scores, 3)
    for class_ = 1:size(scores, 2)
        score = scores(:, class_, image);
        [~, order] = sort(score, 'descend');
        if ~isempty(least)
            order = order(score(order) > cast(least, class(score)));
        end
        kept = ops.best_boxes(low(:, order, image), high(:, order, image), most, overlap);
        rows = zeros(3, numel(kept), 'int64');
        rows(1, :) = image - 1;
        rows(2, :) = class_ - 1;
        rows(3, :) = order(kept) - 1;
        y = [y, rows];
    end
end
end
