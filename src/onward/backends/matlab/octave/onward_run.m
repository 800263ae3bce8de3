function onward_run(id, input, output, count)
% Call a model with the arguments in a file, and write what it gives to another.
  kept = onward_kept('get', id);
  given = load(input);
  found = cell(1, count);
  [found{:}] = feval([kept{2} '.model'], kept{1}, given.given{:});
  file = fopen(output, 'w');
  for k = 1:count
    onward_write(file, found{k});
  end
  fclose(file);
end
