function y = sample_at(x, at, shape, mode, padding, align_corners)
% The values of an image, elements x channels, at places between its elements, which have a column for each dimension.
rank = numel(at);
if strcmp(mode, 'nearest')
    for dim = 1:rank
        at{dim} = ops.into_range(ops.round_even(at{dim}), shape(dim), padding, align_corners);
        at{dim} = ops.round_even(at{dim});
    end
    y = ops.elements_at(x, at, shape);
    return
end
steps = -1:2;
if strcmp(mode, 'linear')
    steps = 0:1;
    for dim = 1:rank
        at{dim} = ops.into_range(at{dim}, shape(dim), padding, align_corners);
    end
end
count = numel(steps);
low = cell(1, rank);
weights = cell(1, rank);
for dim = 1:rank
    low{dim} = floor(at{dim});
    part = at{dim} - low{dim};
    if count == 2
        weights{dim} = [1 - part, part];
    else
        weights{dim} = ops.cubic_filter(part - steps, -0.75);
    end
end
y = 0;
place = cell(1, rank);
for pick = 0:count ^ rank - 1
    weight = 1;
    for dim = rank:-1:1
        k = mod(floor(pick / count ^ (dim - 1)), count) + 1;
        weight = weight .* weights{dim}(:, k);
        place{dim} = low{dim} + steps(k);
        if count == 4
            place{dim} = ops.round_even(ops.into_range(place{dim}, shape(dim), padding, align_corners));
        end
    end
    y = y + ops.elements_at(x, place, shape) .* weight;
end
end
