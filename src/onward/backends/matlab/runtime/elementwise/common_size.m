function shape = common_size(varargin)
% The size that arrays of these sizes broadcast to.
rank = max(cellfun(@numel, varargin));
shape = ones(1, rank);
for k = 1:nargin
    own = [varargin{k}, ones(1, rank - numel(varargin{k}))];
    if any(own ~= shape & own ~= 1 & shape ~= 1)
        error('onward:size', 'arrays of %s and %s do not fit', mat2str(shape), mat2str(own));
    end
    shape(own ~= 1) = own(own ~= 1);
end
end
