function passed = passes_test(value, threshold, test)
% Whether value <= threshold, or as the test says.
switch test
    case '<='
        passed = value <= threshold;
    case '<'
        passed = value < threshold;
    case '>='
        passed = value >= threshold;
    case '>'
        passed = value > threshold;
    case '=='
        passed = value == threshold;
    otherwise
        passed = value ~= threshold;
end
end
