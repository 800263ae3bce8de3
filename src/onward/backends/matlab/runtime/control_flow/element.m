function y = element(items, k)
% The k-th element of a sequence.
y = items{k};
end
