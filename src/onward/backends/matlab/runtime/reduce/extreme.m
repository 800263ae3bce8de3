function y = extreme(x, dims, which)
% The 'max' or 'min' along dimensions.
y = x;
is_max = strcmp(which, 'max');
for dim = dims
    shape = [size(y), ones(1, dim - ndims(y))];
    if islogical(y)
        if is_max
            y = any(y, dim);
        else
            y = all(y, dim);
        end
    elseif shape(dim) == 0
        shape(dim) = 1;
        if isfloat(y)
            worst = cast(Inf, class(y));
        elseif is_max
            worst = intmin(class(y));
        else
            worst = intmax(class(y));
        end
        if isfloat(y) && is_max
            worst = -worst;
        end
        y = repmat(worst, shape);
    else
        if isfloat(y)
            missing = any(isnan(y), dim);
        else
            missing = false;
        end
        if is_max
            y = max(y, [], dim);
        else
            y = min(y, [], dim);
        end
        if any(missing(:))
            y(missing) = NaN;
        end
    end
end
end
