"""jax.random with threefry keys: the same bits."""

import jax
import jax.numpy as jnp
from jax import random
from jax_cases import case, cases

cases(
    "u32[2]",
    bits=lambda key: random.bits(key, (5,)),
    bits_odd=lambda key: random.bits(key, (3, 7)),
    bits_bytes=lambda key: random.bits(key, (10,), jnp.uint8),
    bits_16=lambda key: random.bits(key, (6,), jnp.uint16),
    split=lambda key: random.split(key),
    split_many=lambda key: random.split(key, 5),
    split_shape=lambda key: random.split(key, (2, 3)),
    fold_in=lambda key: random.fold_in(key, 7),
    uniform=lambda key: random.uniform(key, (4, 3)),
    uniform_range=lambda key: random.uniform(key, (9,), minval=-2.0, maxval=5.0),
    normal=lambda key: random.normal(key, (4, 3)),
    normal_scalar=lambda key: random.normal(key),
    randint=lambda key: random.randint(key, (8,), 0, 10),
    randint_negative=lambda key: random.randint(key, (8,), -100, 1000),
    randint_byte=lambda key: random.randint(key, (8,), 0, 255, jnp.uint8),
    bernoulli=lambda key: random.bernoulli(key, 0.3, (20,)),
    bernoulli_probabilities=lambda key: random.bernoulli(key, jnp.linspace(0, 1, 11)),
    categorical=lambda key: random.categorical(key, jnp.log(jnp.array([0.1, 0.6, 0.3])), shape=(12,)),
    categorical_rows=lambda key: random.categorical(key, jnp.arange(12.0).reshape(3, 4) / 4),
    gumbel=lambda key: random.gumbel(key, (6,)),
    exponential=lambda key: random.exponential(key, (6,)),
    laplace=lambda key: random.laplace(key, (6,)),
    logistic=lambda key: random.logistic(key, (6,)),
    cauchy=lambda key: random.cauchy(key, (6,)),
    truncated_normal=lambda key: random.truncated_normal(key, -2.0, 2.0, (8,)),
    truncated_normal_above=lambda key: random.truncated_normal(key, 0.5, jnp.inf, (8,)),
    permutation=lambda key: random.permutation(key, 10),
    permutation_rows=lambda key: random.permutation(key, jnp.arange(12.0).reshape(6, 2)),
    permutation_independent=lambda key: random.permutation(key, jnp.arange(12).reshape(3, 4), 1, independent=True),
    choice=lambda key: random.choice(key, 10, (5,)),
    choice_without_replacement=lambda key: random.choice(key, 10, (5,), replace=False),
    choice_weighted=lambda key: random.choice(key, 4, (6,), p=jnp.array([0.1, 0.2, 0.3, 0.4])),
    choice_weighted_without=lambda key: random.choice(key, 4, (3,), False, jnp.array([0.1, 0.2, 0.3, 0.4])),
    rademacher=lambda key: random.rademacher(key, (9,)),
    gamma=lambda key: random.gamma(key, 2.5, (5,)),
    beta=lambda key: random.beta(key, 2.0, 3.0, (4,)),
    dirichlet=lambda key: random.dirichlet(key, jnp.array([1.0, 2.0, 3.0])),
    chisquare=lambda key: random.chisquare(key, 3.0, (4,)),
    poisson=lambda key: random.poisson(key, 3.5, (6,)),
    student_t=lambda key: random.t(key, 4.0, (4,)),
    multivariate_normal=lambda key: random.multivariate_normal(key, jnp.zeros(2), jnp.array([[2.0, 0.3], [0.3, 1.0]])),
    ball=lambda key: random.ball(key, 3, shape=(4,)),
    maxwell=lambda key: random.maxwell(key, (4,)),
    rayleigh=lambda key: random.rayleigh(key, 2.0, (4,)),
    weibull=lambda key: random.weibull_min(key, 1.5, 2.0, (4,)),
    pareto=lambda key: random.pareto(key, 3.0, (4,)),
    lognormal=lambda key: random.lognormal(key, 0.5, (4,)),
    geometric=lambda key: random.geometric(key, 0.3, (5,)),
    triangular=lambda key: random.triangular(key, 0.0, 0.3, 1.0, (5,)),
    wald=lambda key: random.wald(key, 1.5, (4,)),
    double_sided_maxwell=lambda key: random.double_sided_maxwell(key, 0.5, 2.0, (4,)),
    uniform_half=lambda key: random.uniform(key, (7,), jnp.float16),
    normal_brain=lambda key: random.normal(key, (7,), jnp.bfloat16),
)


@case("i32[]")
def key_of_a_seed(seed):
    return random.key_data(random.key(seed)), random.normal(random.key(seed), (3,))


@case("f32[4]")
def constant_key(x):
    return x + random.normal(random.key(42), (4,)), random.uniform(random.PRNGKey(0), (2, 2))


@case("u32[2]", "f32[4,8] plain")
def dropout(key, x):
    keep = random.bernoulli(key, 0.8, x.shape)
    return jnp.where(keep, x / 0.8, 0.0)


@case("u32[2]", "f32[3,5] plain", "f32[3,5] -1..1")
def reparametrisation(key, mean, log_variance):
    return mean + jnp.exp(0.5 * log_variance) * random.normal(key, mean.shape)


@case("u32[2]")
def chain_of_keys(key):
    values = []
    for _ in range(3):
        key, part = random.split(key)
        values.append(random.normal(part, (2,)))
    return jnp.stack(values), key


@case("u32[2]")
def keys_in_a_vmap(key):
    return jax.vmap(lambda k: random.uniform(k, (3,)))(random.split(key, 4))


@case("u32[2]")
def keys_in_a_scan(key):
    def step(carry, _):
        carry, part = random.split(carry)
        return carry, random.normal(part, (2,))

    return jax.lax.scan(step, key, None, length=4)


@case("u32[2]", "i32[] 0..100")
def key_folded_with_a_step(key, step):
    return random.uniform(random.fold_in(key, step), (4,))


@case("u32[2]")
def wrapped_keys(data):
    key = random.wrap_key_data(data)
    return random.key_data(random.split(key, 3)), random.bits(key)


@case("u32[2]")
def cloned_keys(data):
    key = random.clone(random.wrap_key_data(data))
    return random.key_data(key), random.randint(key, (3,), 0, 5)


@case("u32[2]")
def initial_weights(key):
    one, other = random.split(key)
    initializers = jax.nn.initializers
    return initializers.glorot_uniform()(one, (4, 6)), initializers.he_normal()(other, (3, 3, 2, 4))


@case("u32[2]")
def orthogonal_weights(key):
    weights = jax.nn.initializers.orthogonal()(key, (4, 4))
    return jnp.abs(weights @ weights.T)


@case("u32[2]", "f32[5] plain", "f32[] 0.5..2")
def sample_with_temperature(key, logits, temperature):
    return random.categorical(key, logits / temperature, shape=(6,))


@case("u32[2]", "f32[8] plain")
def top_k_sampling(key, logits):
    values, indices = jax.lax.top_k(logits, 3)
    return indices[random.categorical(key, values)]


@case("u32[2]", "f32[8] plain")
def nucleus_sampling(key, logits):
    order = jnp.argsort(-logits, stable=True)
    mass = jnp.cumsum(jax.nn.softmax(logits[order]))
    kept = jnp.where(mass - jax.nn.softmax(logits[order]) < 0.9, logits[order], -jnp.inf)
    return order[random.categorical(key, kept)]


@case("u32[2]")
def shuffled_batches(key):
    return random.permutation(key, 12).reshape(3, 4)


@case("u32[2]")
def random_walk(key):
    return jnp.cumsum(random.rademacher(key, (20,)))


@case("u32[2]")
def monte_carlo_pi(key):
    points = random.uniform(key, (100, 2))
    return jnp.mean((points**2).sum(1) < 1) * 4
