function y = couple_pairs(pairs)
% The probabilities of classes from those of each class against each other one, which stand in a column of pairs.
%
% Wu, Lin and Weng, 'Probability Estimates for Multi-class Classification by Pairwise Coupling', 2004, with the number
% of rounds and the precision that LIBSVM and ONNX Runtime use.
count = size(pairs, 1);
unit = eye(count);
y = zeros(count, size(pairs, 3), class(pairs));
for n = 1:size(pairs, 3)
    r = pairs(:, :, n)' .* (1 - unit);
    q = diag(sum(r .^ 2, 1)) - r' .* r;
    p = repmat(cast(1 / count, class(pairs)), count, 1);
    for round = 1:100
        qp = q * p;
        pqp = p' * qp;
        if max(abs(qp - pqp)) < 0.005 / count
            break
        end
        for k = 1:count
            step = (pqp - qp(k)) / q(k, k);
            scale = 1 + step;
            pqp = (pqp + step * (step * q(k, k) + 2 * qp(k))) / scale / scale;
            qp = (qp + step * q(:, k)) / scale;
            p = (p + step * unit(:, k)) / scale;
        end
    end
    y(:, n) = p;
end
end
