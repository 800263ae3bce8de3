function y = resize(x, dims, varargin)
% Resize dimensions to a 'size', or by 'scales'; 'mode' is nearest, linear or cubic.
o = struct('size', [], 'scales', [], 'mode', 'nearest', 'coordinates', 'half_pixel', ...
    'rounding', 'round_prefer_floor', 'policy', 'stretch', 'cubic', -0.75, 'exclude_outside', false, ...
    'antialias', false, 'roi', [], 'outside', 0);
for k = 1:2:numel(varargin)
    o.(varargin{k}) = varargin{k + 1};
end
kind = class(x);
shape = [size(x), ones(1, max(dims) - ndims(x))];
[targets, scales] = ops.resize_targets(shape(dims), double(o.size(:)'), double(o.scales(:)'), o.policy);
if any(targets == 0)
    shape(dims) = targets;
    y = reshape(x([]), shape);
    return
end
region = reshape([zeros(1, numel(dims)), ones(1, numel(dims))], [], 2);
crops = strcmp(o.coordinates, 'tf_crop_and_resize');
if ~isempty(o.roi)
    region = reshape(double(o.roi(:)), [], 2);
end
is_whole = strcmp(o.mode, 'linear') && ~o.antialias && ~isfloat(x);
y = x;
if ~isfloat(x) && ~strcmp(o.mode, 'nearest')
    y = single(x);
end
blank = false;
at = repmat({':'}, 1, numel(shape));
corners = {};
for k = numel(dims):-1:1
    dim = dims(k);
    n = shape(dim);
    is_same = targets(k) == n && scales(k) == 1 && ~(crops && any(region(k, :) ~= [0, 1]));
    if is_same && ~(is_whole && dim <= 2)
        continue
    end
    places = ops.resize_places(targets(k), n, scales(k), o.coordinates, region(k, :));
    if crops
        blank = blank | reshape(places < 0 | places > n - 1, [ones(1, dim - 1), targets(k), 1]);
    end
    if strcmp(o.mode, 'nearest')
        at{dim} = min(max(ops.nearest_place(places, o.rounding), 0), n - 1) + 1;
    elseif is_whole
        [numbers, weights] = ops.linear_taps(places, n);
        corners(end + 1, :) = {dim, numbers, weights};
    else
        y = ops.resize_along(y, dim, places, scales(k), kind, o);
    end
end
if strcmp(o.mode, 'nearest')
    y = y(at{:});
elseif ~isempty(corners)
    y = ops.weigh_corners(y, corners);
end
if any(blank(:))
    y(ops.expand(blank, size(y))) = o.outside;
end
if ~isfloat(x) && ~strcmp(o.mode, 'nearest')
    y = ops.to_integer(y, kind);
end
end
