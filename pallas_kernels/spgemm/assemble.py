"""The last launch of a product: copies finished rows, which are in any order, to their places."""

import jax.numpy as jnp

from ..products.sparse_result import fill
from ..rows.flatten import flatten
from ..simt.device import Grid
from ..simt.launch import launch
from ..simt.typed import one_by_one
from .job import LARGE, LISTS


def assemble(rows, nse, columns, *, ctas, interpret):
    """(indices, data), both (nse,), of `Rows`; behind the last entry indices are `columns`."""
    out, number = rows.out, rows.indptr.shape[0] - 1
    operands = {name: out[name] for name in ("start", "counters", *LISTS.values())}
    operands |= {"from_indices": out["indices"], "from_data": out["data"]}
    operands |= {"alone": rows.alone.astype(jnp.int32), "indptr": rows.indptr}

    def kernel(k, g):
        def copy(places, to, valid):
            columns = k.load(g.from_indices, places, mask=valid, cache="nc")
            values = k.load(g.from_data, places, mask=valid, cache="nc")
            for at, column, value, t in one_by_one(to, columns, values, valid):
                k.store(g.indices, at, column, mask=t)
                k.store(g.data, at, value, mask=t)

        def some(row):
            short = k.load(g.alone, row, mask=row < number, cache="nc") != 0  # in none of the lists
            begin, end = k.row(g.indptr, row, short)
            start = k.load(g.start, row, mask=short, cache="nc")
            moved = lambda places, valid, shift: copy(places, places + shift, valid)  # noqa: E731
            flatten(k, start, k.where(short, end - begin, 0), (begin - start,), moved)

        def whole(row, first, threads):
            begin, end = k.row(g.indptr, row)
            start = k.load(g.start, row, cache="nc")

            def stride(j):
                at = k.several(4, lambda u: j + u * threads)
                copy(start + at, begin + at, at < end - begin)

            k.for_(first, end - begin, 4 * threads, stride)

        k.spread_warps(number, some)
        warps, warp = k.ctas * (k.threads // 32), k.warp * k.ctas + k.cta
        for word, name in LISTS.items():

            def one(i, name=name, large=word == LARGE):
                row = k.load(getattr(g, name), i, cache="nc")
                whole(row, *((k.thread, k.threads) if large else (k.lane, 32)))

            mine, all_ = (k.cta, k.ctas) if word == LARGE else (warp, warps)
            k.for_(mine, k.load(g.counters, word), all_, one)
        fill(k, g.indices, k.load(g.indptr, number), nse, columns)

    done = launch(
        kernel,
        operands,
        {"indices": nse, "data": (nse, out["data"].dtype)},
        **Grid(ctas, 256, interpret).form(),
        name="spgemm_assemble",
    )
    return done["indices"], done["data"]
