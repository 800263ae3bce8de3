function dims = axes_to_dims(axes, rank, none_is_none)
% The dimensions that axes of the file are, of an array that has so many there; without any, all of them.
axes = double(axes(:)');
if isempty(axes) && ~none_is_none
    dims = 1:rank;
else
    dims = unique(rank - mod(axes, rank));
end
dims = reshape(dims, 1, []);
end
