"""The bucket algorithm for SpMSpV of CombBLAS, in JAX: the comparator that Ji et al. 2022 took.

Source: Azad and Buluc, "A work-efficient parallel sparse matrix-sparse vector multiplication
algorithm", IPDPS 2017: products go to buckets of rows, each bucket is merged in its own dense
accumulator, and the entries of the buckets follow each other.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax

import jaxspv as jsp
from jaxspv.ops.products.common.expand import edge_slots, select_runs

BUCKETS = 1024


def bucket_spmspv(A: jsp.CSC, x: jsp.SparseVector, edges: int, nse: int) -> jsp.SparseVector:
    """y = A x over (+, x) for at most `edges` products.

    The partition is a stable sort by the bucket's number alone; inside a bucket the order does not
    matter, since its accumulator is dense.
    """
    m = A.shape[0]
    rows_of_bucket = max(1, -(-m // BUCKETS))
    runs = select_runs(A.indptr, x.indices, x.count)
    slot, owner, valid = edge_slots(runs, jnp.int32(0), edges)
    slot = jnp.clip(slot, 0, A.nse - 1)
    row = jnp.where(valid, A.indices[slot], m)
    product = jnp.where(valid, A.data[slot] * x.data[owner], 0)
    bucket = row // rows_of_bucket
    _, order = lax.sort((bucket, jnp.arange(edges, dtype=jnp.int32)), num_keys=1, is_stable=True)
    return _merge(row[order], product[order], m, nse)


def _merge(row: Array, product: Array, m: int, nse: int) -> jsp.SparseVector:
    sums = jnp.zeros(m, product.dtype).at[row].add(product, mode="drop")
    flags = jnp.zeros(m, bool).at[row].set(True, mode="drop")
    place = jnp.cumsum(flags, dtype=jnp.int32) - 1
    indices = (
        jnp.full(nse, m, jnp.int32)
        .at[jnp.where(flags, place, nse)]
        .set(jnp.arange(m, dtype=jnp.int32), mode="drop")
    )
    data = sums.at[indices].get(mode="fill", fill_value=0)
    count = jnp.sum(flags, dtype=jnp.int32)
    return jsp.SparseVector(data, indices, jnp.minimum(count, nse), count > nse, (m,))
