function onward_load(id, place, package)
% Load the parameters of a package that lies in a folder, and keep them under an id.
  addpath(place);
  onward_kept('set', id, {feval([package '.load']), package, place});
end
