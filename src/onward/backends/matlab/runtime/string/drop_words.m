function y = drop_words(x, compared, words)
% The texts without stop words; one empty text where nothing is left. What is compared with the words is given beside.
y = ops.some_text(x(~ismember(compared(:), words(:))));
end
