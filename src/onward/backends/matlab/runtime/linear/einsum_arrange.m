function x = einsum_arrange(x, term, wanted)
% The array with its dimensions in the order of letters; those that it lacks are 1.
shape = [size(x), ones(1, numel(term) - ndims(x))];
order = zeros(1, 0);
found = ones(1, max(numel(wanted), 2));
for k = 1:numel(wanted)
    place = find(term == wanted(k));
    if ~isempty(place)
        order(end + 1) = place;
        found(k) = shape(place);
    end
end
if numel(order) > 1
    x = permute(x, order);
end
x = reshape(x, found);
end
