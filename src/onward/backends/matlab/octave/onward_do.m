function onward_do(token, problem, action, varargin)
% Do something that may fail, and say how it went: on a line with a token, and in a file what the problem was.
  status = 'ok';
  try
    feval(action, varargin{:});
  catch failure
    status = 'failed';
    text = failure.message;
    for k = 1:min(numel(failure.stack), 4)
      text = sprintf('%s\n  in %s, line %d', text, failure.stack(k).name, failure.stack(k).line);
    end
    file = fopen(problem, 'w');
    fwrite(file, text);
    fclose(file);
  end
  printf('\n%s %s\n', token, status);
  fflush(stdout);
end
