function y = choose(test, yes, no)
% One of two numbers.
if test
    y = yes;
else
    y = no;
end
end
