"""cond, switch, while_loop, fori_loop, scan, map and associative_scan."""

import jax
import jax.numpy as jnp
from jax import lax
from jax_cases import case, cases

cases(
    "f32[6]",
    scan_sum=lambda x: lax.scan(lambda c, v: (c + v, c), 0.0, x),
    scan_reverse=lambda x: lax.scan(lambda c, v: (c * 0.5 + v, c), 0.0, x, reverse=True),
    scan_unrolled=lambda x: lax.scan(lambda c, v: (c * 0.5 + v, c), 0.0, x, unroll=2),
    scan_without_inputs=lambda x: lax.scan(lambda c, _: (c * 0.9, c[0]), x, None, length=4),
    scan_without_outputs=lambda x: lax.scan(lambda c, v: (jnp.maximum(c, v), None), -jnp.inf, x)[0],
    scan_of_nothing=lambda x: lax.scan(lambda c, v: (c + v, v * 2), 1.0, x[:0]),
    scan_constant_outputs=lambda x: lax.scan(lambda c, v: (c, jnp.float32(1.0)), 0.0, x),
    scan_counts=lambda x: lax.scan(lambda c, v: (c + 1, v * c), 0, x),
    scan_once=lambda x: lax.scan(lambda c, v: (c + v, c), x, x[None]),
    fori_sum=lambda x: lax.fori_loop(0, 6, lambda i, c: c + x[i], 0.0),
    fori_from_two=lambda x: lax.fori_loop(2, 5, lambda i, c: c.at[i].set(c[i - 1] * 2), x),
    fori_empty=lambda x: lax.fori_loop(3, 3, lambda i, c: c * 2, x),
    fori_backwards_bounds=lambda x: lax.fori_loop(5, 2, lambda i, c: c * 2, x),
    fori_with_index=lambda x: lax.fori_loop(0, 4, lambda i, c: c * i + 1, x),
    map_squares=lambda x: lax.map(lambda v: v * v, x),
    map_batches=lambda x: lax.map(lambda v: jnp.tanh(v), x, batch_size=4),
    associative_sum=lambda x: lax.associative_scan(jnp.add, x),
    associative_max=lambda x: lax.associative_scan(jnp.maximum, x),
    associative_reverse=lambda x: lax.associative_scan(jnp.add, x, reverse=True),
    cond_true=lambda x: lax.cond(True, lambda v: v + 1, lambda v: v - 1, x),
    cond_on_data=lambda x: lax.cond(x[0] > 0, lambda v: v * 2, lambda v: -v, x),
    cond_without_operand=lambda x: lax.cond(x.sum() > 0, lambda: x[0], lambda: x[1]),
    cond_nested=lambda x: lax.cond(
        x[0] > 0, lambda v: lax.cond(v[1] > 0, lambda w: w, lambda w: w * 3, v), lambda v: v * 0, x
    ),
    python_if_at_trace=lambda x: x * 2 if x.ndim == 1 else x,
    python_loop=lambda x: sum(x[i] * i for i in range(6)),
)


@case("f32[6]", "i32[] -2..5")
def switch(x, which):
    return lax.switch(which, [lambda v: v, lambda v: v * 2, jnp.tanh, lambda v: v[::-1]], x)


@case("f32[3]", "bool[]")
def cond_on_a_flag(x, flag):
    return lax.cond(flag, jnp.sin, jnp.cos, x)


@case("f32[3]", "i32[] -2..2")
def cond_on_an_integer(x, i):
    return lax.cond(i != 0, lambda v: (v, i), lambda v: (v * 2, i + 1), x)


@case("i32[] 1..50")
def while_collatz(n):
    def body(state):
        value, steps = state
        return jnp.where(value % 2 == 0, value // 2, 3 * value + 1), steps + 1

    return lax.while_loop(lambda state: state[0] > 1, body, (n, 0))


@case("f32[] 1..100")
def while_newton(x):
    def body(state):
        guess, _, i = state
        return 0.5 * (guess + x / guess), guess, i + 1

    return lax.while_loop(lambda s: (jnp.abs(s[0] - s[1]) > 1e-3) & (s[2] < 30), body, (x, 0.0, 0))[0]


@case("f32[4] plain")
def while_never(x):
    return lax.while_loop(lambda v: v.sum() > 1e9, lambda v: v * 2, x)


@case("f32[4] 0.5..2", "f32[] 10..100")
def while_with_closure(x, limit):
    return lax.while_loop(lambda v: v.sum() < limit, lambda v: v * 1.5 + x, x)


@case("i32[] 0..7", "f32[8]")
def fori_with_a_bound_of_data(n, x):
    return lax.fori_loop(0, n, lambda i, c: c + x[i], 0.0)


@case("i32[] 0..12")
def fibonacci(n):
    return lax.fori_loop(0, n, lambda i, pair: (pair[1], pair[0] + pair[1]), (0, 1))[0]


@case("f32[5,3] plain", "f32[3,3] plain", "f32[3] plain")
def simple_recurrence(xs, w, h):
    def step(h, x):
        h = jnp.tanh(x + h @ w)
        return h, h

    return lax.scan(step, h, xs)


@case("f32[7,2,4] plain", "f32[12,32] plain", "f32[32] plain")
def lstm_by_hand(xs, w, b):
    def step(state, x):
        h, c = state
        i, f, g, o = jnp.split(jnp.concatenate([x, h], -1) @ w / 4 + b, 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    start = jnp.zeros((2, 8)), jnp.zeros((2, 8))
    return lax.scan(step, start, xs)


@case("f32[6,2,4] plain", "f32[4,24] plain", "f32[8,24] plain")
def gru_by_hand(xs, wx, wh):
    def step(h, x):
        xr, xz, xn = jnp.split(x @ wx / 4, 3, -1)
        hr, hz, hn = jnp.split(h @ wh / 4, 3, -1)
        r, z = jax.nn.sigmoid(xr + hr), jax.nn.sigmoid(xz + hz)
        h = (1 - z) * jnp.tanh(xn + r * hn) + z * h
        return h, h

    return lax.scan(step, jnp.zeros((2, 8)), xs)[1]


@case("f32[4,3]", "f32[4]")
def scan_over_a_tree(xs, ys):
    def step(carry, given):
        return {"a": carry["a"] + given["x"], "n": carry["n"] + 1}, (carry["a"].sum(), given["y"] * 2)

    return lax.scan(step, {"a": jnp.zeros(3), "n": 0}, {"x": xs, "y": ys})


@case("f32[3,4]")
def scan_in_a_scan(xs):
    def outer(carry, row):
        total, partial = lax.scan(lambda c, v: (c + v, c), carry, row)
        return total, partial

    return lax.scan(outer, 0.0, xs)


@case("f32[4,3]")
def scan_with_a_cond(xs):
    def step(carry, x):
        carry = lax.cond(x[0] > 0, lambda c: c + x, lambda c: c * 0.5, carry)
        return carry, carry.sum()

    return lax.scan(step, jnp.zeros(3), xs)


@case("f32[5,2] plain")
def scan_with_a_while(xs):
    def step(carry, x):
        halved = lax.while_loop(lambda v: jnp.abs(v) > 1, lambda v: v / 2, x[0])
        return carry + halved, halved

    return lax.scan(step, 0.0, xs)


@case("f32[5,3]", "i32[5] 0..2")
def scan_with_a_switch(xs, which):
    def step(carry, given):
        x, i = given
        return lax.switch(i, [lambda v: v, lambda v: v + x, lambda v: v * 0], carry), carry

    return lax.scan(step, jnp.ones(3), (xs, which))


@case("f32[2,3] plain", "f32[4,3,3] plain")
def layers_by_scan(x, weights):
    return lax.scan(lambda h, w: (jnp.tanh(h @ w), None), x, weights)[0]


@case("f32[8,2] 0..1", "f32[8,2] plain")
def linear_recurrence(a, b):
    def combine(left, right):
        return left[0] * right[0], right[0] * left[1] + right[1]

    return lax.associative_scan(combine, (a, b))


@case("f32[7,3] plain")
def associative_products(x):
    matrices = x[:, :, None] * 0.2 * x[:, None, :] + jnp.eye(3)
    return lax.associative_scan(jnp.matmul, matrices)


@case("f32[4,5] plain", "i32[4] 0..5")
def masked_recurrence(xs, lengths):
    def step(carry, t):
        alive = t < lengths
        carry = jnp.where(alive, carry * 0.5 + xs[:, t], carry)
        return carry, jnp.where(alive, carry, 0.0)

    return lax.scan(step, jnp.zeros(4), jnp.arange(5))


@case("f32[5,4] plain", "f32[4,4] plain")
def viterbi(emissions, transitions):
    def forward(score, emission):
        every = score[:, None] + transitions
        return every.max(0) + emission, every.argmax(0)

    last, back = lax.scan(forward, emissions[0], emissions[1:])
    _, path = lax.scan(lambda state, table: (table[state], state), last.argmax(), back, reverse=True)
    return last.max(), path


@case("i32[] 0..4")
def greedy_decoding(start):
    table = jnp.sin(jnp.arange(25.0).reshape(5, 5) * 1.7)

    def body(state):
        tokens, i = state
        return tokens.at[i + 1].set(jnp.argmax(table[tokens[i]]).astype(jnp.int32)), i + 1

    tokens = jnp.full(8, -1, jnp.int32).at[0].set(start)
    return lax.while_loop(lambda s: (s[1] < 7) & (s[0][s[1]] != 0), body, (tokens, 0))


@case("f32[] -3..3", "f32[] 0..3")
def bisection(low, width):
    def body(i, ends):
        a, b = ends
        middle = (a + b) / 2
        return jnp.where(jnp.sin(middle) > 0, a, middle), jnp.where(jnp.sin(middle) > 0, middle, b)

    return lax.fori_loop(0, 12, body, (low, low + width))


@case("f32[3] plain")
def runge_kutta(state):
    def slope(s):
        x, y, z = s
        return jnp.array([10 * (y - x), x * (2 - z) - y, x * y - 8 / 3 * z])

    def step(s, _):
        h = 0.01
        k1 = slope(s)
        k2 = slope(s + h / 2 * k1)
        k3 = slope(s + h / 2 * k2)
        k4 = slope(s + h * k3)
        return s + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), s

    return lax.scan(step, state, None, length=6)


@case("bool[5,6]")
def game_of_life(board):
    def step(b, _):
        cells = b.astype(jnp.int32)
        around = sum(jnp.roll(cells, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
        return (around == 3) | (b & (around == 2)), around.sum()

    return lax.scan(step, board, None, length=3)


@case("f32[4,4] 0..9")
def shortest_paths(costs):
    def relax(k, d):
        return jnp.minimum(d, d[:, k, None] + d[k, None, :])

    return lax.fori_loop(0, 4, relax, jnp.where(jnp.eye(4, dtype=bool), 0.0, costs))


@case("i32[6] 0..20", "i32[6] 1..9")
def knapsack(values, weights):
    def take(best, item):
        value, weight = item
        room = jnp.arange(16)
        with_it = jnp.where(room >= weight, jnp.take(best, room - weight, mode="clip") + value, 0)
        return jnp.maximum(best, with_it), None

    return lax.scan(take, jnp.zeros(16, jnp.int32), (values, weights))[0]
