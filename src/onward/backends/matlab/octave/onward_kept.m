function value = onward_kept(what, id, value)
% What is kept between calls, by id.
  persistent kept
  if isempty(kept)
    kept = struct();
  end
  switch what
    case 'set'
      kept.(id) = value;
    case 'get'
      value = kept.(id);
    case 'free'
      if isfield(kept, id)
        rmpath(kept.(id){3});
        kept = rmfield(kept, id);
      end
      value = [];
  end
end
