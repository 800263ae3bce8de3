function [y, kept] = dropout(x, ratio, active)
% Elements dropped by chance where that is active, the others scaled; and which of them are kept.
if active && ratio > 0
    kept = rand(size(x)) >= ratio;
    y = x .* kept / cast(1 - ratio, class(x));
else
    kept = true(size(x));
    y = x;
end
end
