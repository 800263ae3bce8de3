function arrays = einsum_operands(terms, arrays)
% Arrays of which all dimensions with the same letter have the same size.
letters = unique([terms{:}]);
sizes = cell(1, numel(terms));
whole = ones(1, numel(letters));
for k = 1:numel(terms)
    [~, place] = ismember(terms{k}, letters);
    own = [size(arrays{k}), ones(1, numel(place) - ndims(arrays{k}))];
    sizes{k} = own(1:max(numel(place), 2));
    for dim = find(own(1:numel(place)) ~= 1)
        if whole(place(dim)) ~= 1 && whole(place(dim)) ~= own(dim)
            error('onward:size', 'the sizes of the dimensions %s differ', terms{k}(dim));
        end
        whole(place(dim)) = own(dim);
    end
end
for k = 1:numel(terms)
    [~, place] = ismember(terms{k}, letters);
    wanted = sizes{k};
    wanted(1:numel(place)) = whole(place);
    arrays{k} = ops.expand(arrays{k}, wanted);
end
end
