function y = some_text(x)
% A column of texts; one empty text where there is none.
y = x(:);
if isempty(y)
    y = {''};
end
end
