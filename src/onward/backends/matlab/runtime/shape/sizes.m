function y = sizes(shape)
% The sizes that an array has for a shape of the file: reversed, and at least two.
y = double(shape(:)');
y = [y(end:-1:1), ones(1, 2 - numel(y))];
end
