function y = write_cache(cache, update, start, dim, rank, circular)
% A cache with an update written along a dimension, where each image of the last dimension says, from 0.
y = cache;
n = size(cache, dim);
count = size(update, dim);
at = repmat({':'}, 1, max(rank, 2));
from = at;
for k = 1:size(cache, rank)
    first = 0;
    if ~isempty(start)
        first = double(start(k));
    end
    place = first + (0:count - 1);
    if circular
        place = mod(place, n);
    end
    at{dim} = place + 1;
    at{rank} = k;
    from{rank} = k;
    y(at{:}) = update(from{:});
end
end
