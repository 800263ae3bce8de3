function y = stack(items, dim, rank, nothing, kind)
% Arrays with so many dimensions in the file, one after the other along a new one; where there are none, the size is given.
if isempty(items)
    if strcmp(kind, 'cell')
        y = cell(nothing);
    elseif strcmp(kind, 'logical')
        y = false(nothing);
    else
        y = zeros(nothing, kind);
    end
    return
end
if dim <= rank
    shape = [size(items{1}), ones(1, rank - ndims(items{1}))];
    shape = [shape(1:dim - 1), 1, shape(dim:rank)];
    for k = 1:numel(items)
        items{k} = reshape(items{k}, [shape, 1]);
    end
end
y = cat(dim, items{:});
end
