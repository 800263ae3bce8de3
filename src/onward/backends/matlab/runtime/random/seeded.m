function y = seeded(kind, seed, shape, of)
% Random numbers that belong to a seed; the generator goes on as if nothing had been drawn.
before = rng();
rng(seed, 'twister');
if strcmp(kind, 'uniform')
    y = rand(shape, of);
else
    y = randn(shape, of);
end
rng(before);
end
