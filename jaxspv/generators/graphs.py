"""Random graphs of any size: R-MAT, grids, Delaunay triangulations, Erdos-Renyi.

Every generator takes the source of its randomness first, a `jax.random.key`; equal keys give equal
graphs. Values are ones (float32).
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .._core.eager.arrays import on_accelerator, single_numbers
from .._core.platforms import default_promotion
from ..construct.edges import sort_pairs, unique_host
from ..construct.from_arrays import as_format
from ..formats import COO
from ..shapes import Key

ROUNDING = 1e-9  # by which odds may add up to more than 1: 0.8, 0.1 and 0.1 do


def rmat(
    key: Key,
    scale: int,
    edge_factor: int = 16,
    *,
    a: float = 0.57,
    b: float = 0.19,
    c: float = 0.19,
    symmetric: bool = True,
    permute: bool = True,
    format: str = "csr",
) -> Any:
    """R-MAT: each of `edge_factor * 2^scale` edges falls `scale` times into a quadrant.

    The quadrants have the odds a, b, c, 1 - a - b - c (defaults: Graph500). Self loops and repeated
    edges are dropped. Drawn, sorted and joined on the default device; on a CPU the sort is SciPy's.

    Args:
        key: `jax.random.key`.
        scale: log2 of the number of vertices.
        edge_factor: edges drawn for each vertex.
        a, b, c: odds of the quadrants (upper left, upper right, lower left).
        symmetric: store both directions of every edge.
        permute: number the vertices at random; else small ids have large degrees.
        format: name of the format.

    Raises:
        ValueError: the odds are no distribution, a size is out of range, or `key` is no key.
        TypeError: a size is no integer.

    Source: Chakrabarti, Zhan, Faloutsos, "R-MAT: a recursive model for graph mining", SDM 2004;
    Graph500 specification, section 3.

    >>> rmat(jax.random.key(0), 6, 4).shape
    (64, 64)
    """
    scale, edge_factor, a, b, c = check_rmat(scale, edge_factor, a, b, c)
    edges = edge_factor << scale
    if edges * (2 if symmetric else 1) >= 2**31 - 1:
        raise ValueError(f"{edges} edges need int64 indices: lower `scale` or `edge_factor`.")
    head, tail = rmat_edges(check_key(key), scale, (edges,), (a, b, c), permute)
    return simple_graph(head, tail, 1 << scale, symmetric=symmetric, format=format)


def check_rmat(
    scale: Any, edge_factor: Any, a: Any, b: Any, c: Any
) -> tuple[int, int, float, float, float]:
    """Python's numbers. Refuses sizes of an R-MAT graph, and numbers that are no odds of three of
    four quadrants."""
    scale = check_size("scale", scale, 30)
    edge_factor = check_size("edge_factor", edge_factor, 2**31 - 1)
    single_numbers(a=a, b=b, c=c)
    a, b, c = float(a), float(b), float(c)
    if not (all(odds >= 0 for odds in (a, b, c)) and a + b + c <= 1 + ROUNDING):
        raise ValueError(f"`a`, `b`, `c` must be odds of sum at most 1; got {a}, {b}, {c}.")
    return scale, edge_factor, a, b, c


@functools.partial(jax.jit, static_argnames=("scale", "shape", "odds", "permute", "sharding"))
@default_promotion()
def rmat_edges(
    key: Any,
    scale: int,
    shape: tuple[int, ...],
    odds: tuple[float, float, float],
    permute: bool,
    sharding: Any = None,
) -> tuple[Array, Array]:
    """Both ends of edges of an R-MAT graph, in an array of a shape.

    Edge k, counted row by row, depends on the key and k alone: a sharded array is drawn where it
    lies. (Threefry, counted by places.)
    """
    a, b, c = odds

    def laid(x):
        return x if sharding is None else lax.with_sharding_constraint(x, sharding)

    def quadrant(_, state):
        head, tail, key = state
        key, draw = jax.random.split(key)
        r = laid(jax.random.uniform(draw, shape))
        low = r >= a + b
        right = ((r >= a) & ~low) | (r >= a + b + c)
        return laid(2 * head + low), laid(2 * tail + right), key

    zero = laid(jnp.zeros(shape, jnp.int32))
    head, tail, key = lax.fori_loop(0, scale, quadrant, (zero, zero, key))
    if not permute:
        return head, tail
    relabel = jax.random.permutation(key, 1 << scale).astype(jnp.int32)
    return relabel[head], relabel[tail]


def grid2d(
    key: Key, rows: int, cols: int | None = None, *, drop: float = 0.0, format: str = "csr"
) -> Any:
    """A rows-by-cols grid, every vertex joined with its neighbours right and below, undirected.

    Vertex (i, j) has number `i * cols + j`.

    Args:
        key: `jax.random.key`; None will do where nothing is dropped.
        rows, cols: the sides; a square by default.
        drop: the probability that an edge is left out.
        format: name of the format.

    Raises:
        ValueError: a side or `drop` is out of range, or `key` is no key.
        TypeError: a side is no integer.

    >>> grid2d(None, 2, 3).todense().sum(axis=1).tolist()
    [2.0, 3.0, 2.0, 2.0, 3.0, 2.0]
    """
    cols = rows if cols is None else cols
    rows, cols = check_size("rows", rows, 2**31 - 2), check_size("cols", cols, 2**31 - 2)
    if 4 * rows * cols >= 2**31 - 1:
        raise ValueError(f"a {rows}-by-{cols} grid needs int64 indices: lower `rows` or `cols`.")
    single_numbers(drop=drop)
    if not 0 <= drop <= 1:
        raise ValueError(f"`drop` must lie in [0, 1]; got {drop}.")
    vertex = np.arange(rows * cols, dtype=np.int32).reshape(rows, cols)
    head = np.concatenate([vertex[:, :-1].ravel(), vertex[:-1].ravel()])
    tail = np.concatenate([vertex[:, 1:].ravel(), vertex[1:].ravel()])
    if key is not None:
        check_key(key)
    if drop:
        keep = random_generator(key).random(head.shape) >= drop
        head, tail = head[keep], tail[keep]
    return simple_graph(head, tail, rows * cols, format=format)


def delaunay(key: Key, n: int, *, format: str = "csr") -> Any:
    """The Delaunay triangulation of n uniform points in the unit square, undirected (host).

    Args:
        key: `jax.random.key`.
        n: number of points, at least 3.
        format: name of the format.

    Raises:
        ValueError: `n` is out of range, or `key` is no key.
        TypeError: `n` is no integer.

    Source: `scipy.spatial.Delaunay` (Qhull); Barber, Dobkin, Huhdanpaa, ACM TOMS 22, 1996.

    >>> delaunay(jax.random.key(0), 16).shape
    (16, 16)
    """
    from scipy.spatial import Delaunay

    n = check_size("n", n, 2**31 - 2)
    if n < 3:
        raise ValueError(f"`n` must be at least 3 to have a triangle; got {n}.")
    corners = Delaunay(random_generator(key).random((n, 2))).simplices.astype(np.int32)
    head, tail = corners.T.ravel(), np.roll(corners, -1, axis=1).T.ravel()
    return simple_graph(head, tail, n, format=format)


def erdos_renyi(
    key: Key,
    n: int,
    *,
    p: float | None = None,
    m: int | None = None,
    directed: bool = False,
    format: str = "csr",
) -> Any:
    """G(n, p): every edge with probability p; or G(n, m): m edges, each set of m as likely (host).

    Without self loops. G(n, p) is G(n, m) with a binomial m.

    Args:
        key: `jax.random.key`.
        n: number of vertices.
        p: probability of an edge; or
        m: number of edges.
        directed: pairs (i, j) and (j, i) are two edges.
        format: name of the format.

    Raises:
        ValueError: not exactly one of p and m is given, it is out of range, or `key` is no key.
        TypeError: `n` or `m` is no integer.

    Cost: O(m log m) expected; at m beyond half of all pairs, O(pairs).

    Source: Erdos, Renyi, "On random graphs I", Publ. Math. Debrecen 1959; Gilbert, 1959.

    >>> int(erdos_renyi(jax.random.key(0), 100, m=50).count)
    100
    """
    n = check_size("n", n, 2**31 - 2)
    if (p is None) == (m is None):
        raise ValueError(f"exactly one of `p` and `m` must be given; got p={p}, m={m}.")
    single_numbers(p=0 if p is None else p)
    if p is not None and not 0 <= p <= 1:
        raise ValueError(f"`p` must lie in [0, 1]; got {p}.")
    pairs = n * (n - 1) // (1 if directed else 2)
    if m is not None:
        m = check_size("m", m, pairs)
    rng = random_generator(key)
    edges = int(rng.binomial(pairs, p)) if p is not None else m or 0
    chosen = distinct(rng, pairs, edges)
    if directed:
        head, tail = chosen // max(n - 1, 1), chosen % max(n - 1, 1)
        tail += tail >= head  # skips the diagonal
    else:
        head, tail = _unrank(chosen)
    return simple_graph(head, tail, n, symmetric=not directed, format=format)


def _unrank(k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The k-th pair (i, j), j < i, counted row by row: `k = i (i - 1) / 2 + j`."""
    i = ((1 + np.sqrt(1 + 8 * k.astype(np.float64))) / 2).astype(np.int64)
    i -= i * (i - 1) // 2 > k  # the root may be off by one
    i += i * (i + 1) // 2 <= k
    return i, k - i * (i - 1) // 2


def simple_graph(
    head: Any, tail: Any, n: int, *, symmetric: bool = True, format: str = "csr"
) -> Any:
    """The graph of an edge list without self loops and repetitions; every value 1 (float32).

    Args:
        head, tail: int (edges,) in [0, n), on the device or the host; sorted where they are.
        n: number of vertices.
        symmetric: store both directions of every edge.
        format: name of the format.
    """
    if on_accelerator(head, tail):
        row, col, keep = _mark(jnp.asarray(head), jnp.asarray(tail), symmetric)
        row, col = _compact(row, col, keep, int(jnp.sum(keep, dtype=jnp.int32)))
    else:
        head, tail = np.asarray(head, np.int32), np.asarray(tail, np.int32)
        head, tail = head[head != tail], tail[head != tail]
        ends = np.r_[head, tail], np.r_[tail, head]
        row, col, _, _ = unique_host(*(ends if symmetric else (head, tail)), (n, n))
    ones = jnp.ones(row.shape[0], jnp.float32)
    coo = COO(ones, jnp.asarray(row), jnp.asarray(col), jnp.asarray(False), (n, n))
    return as_format(coo, format)


@functools.partial(jax.jit, static_argnames="symmetric")
def _mark(head, tail, symmetric):
    """Sorted pairs, and which of them to keep."""
    if symmetric:
        head, tail = jnp.concatenate([head, tail]), jnp.concatenate([tail, head])
    row, col = sort_pairs(head, tail)[:2]
    fresh = (row[1:] != row[:-1]) | (col[1:] != col[:-1])
    return row, col, (row != col) & jnp.append(True, fresh)


@functools.partial(jax.jit, static_argnames="count")
def _compact(row, col, keep, count):
    place = jnp.where(keep, jnp.cumsum(keep, dtype=jnp.int32) - 1, count)
    return tuple(jnp.zeros(count, jnp.int32).at[place].set(x, mode="drop") for x in (row, col))


def check_size(name: str, value: Any, limit: int) -> int:
    """An argument as Python's integer: one of NumPy wraps. Refuses what is none in [0, limit]."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
        raise TypeError(f"`{name}` must be an integer; got {value!r}.")
    if not 0 <= value <= limit:
        raise ValueError(f"`{name}` must lie in [0, {limit}]; got {value}.")
    return int(value)


def check_key(key: Any) -> Any:
    """`key`, if it is one JAX key (of `jax.random.key`, or the older `jax.random.PRNGKey`)."""
    dtype, shape = getattr(key, "dtype", None), getattr(key, "shape", None)
    if dtype is not None:
        if jnp.issubdtype(dtype, jax.dtypes.prng_key) and shape == ():
            return key
        raw = jax.eval_shape(lambda: jax.random.key_data(jax.random.key(0)))
        if dtype == np.uint32 and shape == raw.shape:
            return key
    raise ValueError(
        "`key` must be one key, as of jax.random.key(seed), and comes first in generators; "
        f"got {key!r}."
    )


def random_generator(key: Any) -> np.random.Generator:
    """A NumPy generator seeded by 128 bits of a JAX key, for draws on the host."""
    return np.random.default_rng(np.asarray(jax.random.bits(check_key(key), (4,), "uint32")))


def distinct(rng: np.random.Generator, population: int, k: int) -> np.ndarray:
    """k distinct integers of [0, population), each set as likely, in random order."""
    if 2 * k > population:
        return rng.permutation(population)[:k]
    drawn = np.zeros(0, np.int64)
    while drawn.size < k:
        more = rng.integers(population, size=k - drawn.size + 16 + k // 8)
        drawn = np.concatenate([drawn, more])
        drawn = drawn[np.sort(np.unique(drawn, return_index=True)[1])]
    return drawn[:k]
