function onward_write(file, value)
% Write a value: what it is, its sizes, and its numbers as they lie in memory.
  kind = class(value);
  is_complex = ~iscell(value) && ~ischar(value) && iscomplex(value);
  fprintf(file, '%s %d %d%s\n', kind, is_complex, ndims(value), sprintf(' %d', size(value)));
  if iscell(value)
    for k = 1:numel(value)
      onward_write(file, value{k});
    end
  elseif ischar(value)
    fwrite(file, uint8(value), 'uint8');
  elseif islogical(value)
    fwrite(file, value, 'uint8');
  elseif isnumeric(value)
    fwrite(file, real(value), kind);
    if is_complex
      fwrite(file, imag(value), kind);
    end
  else
    error('onward:kind', 'a model gave a %s', kind);
  end
end
