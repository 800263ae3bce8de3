function index = all_known(index)
% The numbers as they are; an error where one is 0.
if any(index(:) == 0)
    error('onward:category', 'a value is none of the categories');
end
end
