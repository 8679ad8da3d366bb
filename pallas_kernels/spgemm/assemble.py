"""Rows that lie in any order, put in their own: the last launch of a product."""

from ..products.sparse_result import fill
from ..rows.flatten import flatten
from ..simt.launch import launch
from .job import LARGE, MEDIUM


def assemble(job, out, products, indptr, *, most, ctas, threads, interpret):
    """(indices, data) (nse,) of the rows at `start`, as `indptr` says; columns past the end."""
    operands = {name: out[name] for name in ("start", "medium", "large", "counters")}
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

        k.spread_warps(job.rows, some)
        for word, rows in ((MEDIUM, g.medium), (LARGE, g.large)):

            def one(i, rows=rows):
                row = k.load(rows, i, cache="nc")
                begin, end = k.row(g.indptr, row)
                start = k.load(g.start, row, cache="nc")

                def stride(j):
                    at = [j + u * k.threads for u in range(4)]
                    copy(
                        [start + a for a in at],
                        [begin + a for a in at],
                        [a < end - begin for a in at],
                    )

                k.for_(k.thread, end - begin, 4 * k.threads, stride)

            k.for_(k.cta, k.load(g.counters, word), k.ctas, one)
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
