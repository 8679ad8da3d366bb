"""What the errors for SciPy's names that are not here suggest."""

from __future__ import annotations

METHODS = {  # of SciPy's sparse arrays A -> what does the same
    "argmax": "`A.todense().argmax()`",
    "argmin": "`A.todense().argmin()`",
    "col": "`A.rowcol()[1]`",
    "conj": "`A.with_data(A.data.conj())`",
    "conjugate": "`A.with_data(A.data.conj())`",
    "coords": "`A.rowcol()`",
    "count_nonzero": "`(A != 0).sum()`, or `A.nnz` for the number of entries",
    "eliminate_zeros": "`jsp.select(A, jsp.operators.valuene, 0)`",
    "getcol": "`A[:, j]`",
    "getnnz": "`A.nnz`",
    "getrow": "`A[i]`",
    "has_canonical_format": "`A.unique`",
    "has_sorted_indices": "`A.sorted`",
    "maximum": "`jsp.ewise_union(A, B, jsp.operators.max)`",
    "minimum": "`jsp.ewise_union(A, B, jsp.operators.min)`",
    "reshape": "`jsp.from_scipy(A.to_scipy().reshape(...))`",
    "resize": "`jsp.graphblas.resize`",
    "row": "`A.rowcol()[0]`",
    "sum_duplicates": "`jsp.graphblas.build` when the matrix is made",
    "tobsr": '`A.asformat("tiled")`',
    "todia": "`A.to_scipy().todia()`",
    "todok": "`A.to_scipy().todok()`",
    "tolil": "`A.to_scipy().tolil()`",
    "trace": "`A.diagonal().sum()`",
}
FUNCTIONS = {  # of scipy.sparse -> what does the same
    "csr_array": "`jsp.from_scipy`, `jsp.from_edges` or `jsp.CSR`",
    "csc_array": "`jsp.from_scipy`, `jsp.from_edges` or `jsp.CSC`",
    "coo_array": "`jsp.from_edges` or `jsp.COO`",
    "eye": "`jsp.diag(jnp.ones(n))`",
    "eye_array": "`jsp.diag(jnp.ones(n))`",
    "find": "`A.rowcol()` and `A.data`",
    "hstack": "`jsp.from_scipy(scipy.sparse.hstack(...))`",
    "identity": "`jsp.diag(jnp.ones(n))`",
    "issparse": "`isinstance(A, jsp.CSR)`",
    "random_array": "`jsp.generators.erdos_renyi`",
    "tril": "`jsp.select(A, jsp.operators.tril)`",
    "triu": "`jsp.select(A, jsp.operators.triu)`",
    "vstack": "`jsp.from_scipy(scipy.sparse.vstack(...))`",
}
FUNCTIONS |= {f"{k[:3]}_matrix": FUNCTIONS[f"{k[:3]}_array"] for k in ("csr", "csc", "coo")}
ELEMENTWISE = frozenset(
    "arcsin arcsinh arctan arctanh ceil deg2rad expm1 floor log1p rad2deg rint sign sin sinh sqrt "
    "tan tanh trunc".split()
)


def method(name: str) -> str:
    """The end of the message that a matrix has no such method."""
    if name in ELEMENTWISE:
        return f"; use `jsp.apply(A, jnp.{name})`"
    return f"; use {METHODS[name]}" if name in METHODS else ""
