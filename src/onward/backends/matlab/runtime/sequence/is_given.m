function y = is_given(x)
% Whether an optional value is there: [] is none.
y = ~(isa(x, 'double') && isequal(size(x), [0, 0]));
end
