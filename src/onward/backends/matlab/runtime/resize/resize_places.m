function at = resize_places(target, n, scale, coordinates, region)
% Where each element of a resized dimension lies in the dimension before, counted from 0, in single precision.
steps = (0:target - 1)';
switch coordinates
    case 'asymmetric'
        at = steps / scale;
    case 'align_corners'
        resized = n * scale;
        if abs(resized - target) < 1e-6 * target
            resized = target;
        end
        at = steps * 0;
        if resized ~= 1
            at = steps * (n - 1) / (resized - 1);
        end
    case 'tf_crop_and_resize'
        if target <= 1
            at = steps * 0 + 0.5 * sum(region) * (n - 1);
        else
            at = region(1) * (n - 1) + steps * (region(2) - region(1)) * (n - 1) / (target - 1);
        end
    case 'half_pixel_symmetric'
        share = double(single(target / double(single(n * scale))));
        at = n / 2 * (1 - share) + (steps + 0.5) / scale - 0.5;
    otherwise
        at = single((steps + 0.5) / scale) - single(0.5);
        if strcmp(coordinates, 'pytorch_half_pixel') && target <= 1
            at = steps * 0;
        end
end
at = single(at);
end
