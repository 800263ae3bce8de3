function y = count_ngrams(x, words, ngrams, starts, columns, lengths, skips)
% How often each n-gram occurs in each column of x: one column of counts for each.
%
% ngrams holds places in words: of all 1-grams, then of all 2-grams and so on, each from one of starts on, which counts
% from 0. N-gram number k is counted at columns(k). The members of an n-gram follow each other directly or, up to skips,
% each with the same number of others between.
[~, place] = ismember(x, words);
y = zeros(max(columns), size(x, 2), 'single');
starts = [double(starts(:)'), numel(ngrams)];
before = 0;
for n = 1:numel(starts) - 1
    known = reshape(double(ngrams(starts(n) + 1:starts(n + 1))), n, [])';
    counted = double(columns(before + (1:size(known, 1))));
    before = before + size(known, 1);
    steps = 1:1 + skips * (n > 1);
    for step = steps(n >= lengths(1) & n <= lengths(2) & true(size(steps)))
        count = max(size(x, 1) - step * (n - 1), 0);
        at = bsxfun(@plus, (1:count)', step * (0:n - 1));
        for column = 1:size(x, 2)
            row = place(:, column);
            [is_known, which] = ismember(reshape(row(at), count, n), known, 'rows');
            which = reshape(counted(which(is_known)), [], 1);
            y(:, column) = y(:, column) + accumarray(which, 1, [size(y, 1), 1]);
        end
    end
end
end
