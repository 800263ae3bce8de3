function k = from_the_front(k, n)
% Indices that count from 0, and from the end where they are negative, as MATLAB counts them.
k = double(k);
k(k < 0) = k(k < 0) + n;
k = k + 1;
end
