function [targets, scales] = resize_targets(lengths, wanted, scales, policy)
% The new sizes of dimensions, and the scales that lead to them.
if ~isempty(scales)
    scales = double(single(scales));
    targets = floor(double(single(lengths .* scales)));
    return
end
if any(wanted > 0 & lengths == 0)
    error('onward:size', 'dimensions of %s cannot be resized to %s', mat2str(lengths), mat2str(wanted));
end
scales = double(single(wanted ./ lengths));
scales(wanted == lengths) = 1;
targets = wanted;
if strcmp(policy, 'not_larger')
    scales(:) = min(scales);
    targets = floor(scales .* lengths + 0.5);
elseif strcmp(policy, 'not_smaller')
    scales(:) = max(scales);
    targets = floor(scales .* lengths + 0.5);
end
end
