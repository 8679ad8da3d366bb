"""Rows that lie in any order, put in their own: the last launch of a product."""

from ..products.sparse_result import fill
from ..rows.flatten import flatten
from ..simt.launch import launch
from .job import LARGE, LISTS


def assemble(job, out, products, indptr, *, most, ctas, threads, interpret):
    """(indices, data) (nse,) of the rows at `start`, as `indptr` says; columns past the end."""
    operands = {name: out[name] for name in ("start", "counters", *LISTS.values())}
    operands |= {"from_indices": out["indices"], "from_data": out["data"]}

    def kernel(k, g):
        def copy(places, to, there):
            columns = k.loads(g.from_indices, places, there, cache="nc")
            values = k.loads(g.from_data, places, there, cache="nc")
            for at, column, value, t in zip(to, columns, values, there, strict=True):
                k.store(g.indices, at, column, mask=t)
                k.store(g.data, at, value, mask=t)

        def some(row):
            there = row < job.rows
            few = there & (k.load(g.products, row, mask=there, cache="nc") <= most)
            begin, end = k.row(g.indptr, row, few)
            start = k.load(g.start, row, mask=few, cache="nc")
            shift = begin - start
            flatten(
                k,
                start,
                k.where(few, end - begin, 0),
                (shift,),
                lambda places, payloads, t: copy(
                    places, [p + s for p, (s,) in zip(places, payloads, strict=True)], t
                ),
            )

        def whole(row, first, threads):
            begin, end = k.row(g.indptr, row)
            start = k.load(g.start, row, cache="nc")

            def stride(j):
                at = [j + u * threads for u in range(4)]
                there = [a < end - begin for a in at]
                copy([start + a for a in at], [begin + a for a in at], there)

            k.for_(first, end - begin, 4 * threads, stride)

        k.spread_warps(job.rows, some)
        warps, warp = k.ctas * (k.threads // 32), k.warp * k.ctas + k.cta
        for word, name in LISTS.items():
            rows, number = getattr(g, name), k.load(g.counters, word)
            who, many, how = (
                (k.cta, k.ctas, (k.thread, k.threads))
                if word == LARGE
                else (warp, warps, (k.lane, 32))
            )
            k.for_(
                who,
                number,
                many,
                lambda i, rows=rows, how=how: whole(k.load(rows, i, cache="nc"), *how),
            )
        fill(k, g.indices, k.load(g.indptr, job.rows), job.nse, job.columns)

    done = launch(
        kernel,
        {**operands, "products": products, "indptr": indptr},
        {"indices": job.nse, "data": (job.nse, job.semiring.dtype)},
        ctas=ctas,
        threads=threads,
        name="spgemm_assemble",
        interpret=interpret,
    )
    return done["indices"], done["data"]
