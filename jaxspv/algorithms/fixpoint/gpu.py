"""The forms of `fixpoint` by kernels for GPUs."""

from __future__ import annotations

from . import gpu_dense, gpu_push
from .api import Fixpoint, finite, op, vectors_vectorised
from .step import Call


@op.register(
    "frontier", backend="pallas", refuse=gpu_push.not_persistent, batched=vectors_vectorised
)
def _persistent(*operands, **static):
    """The whole loop in one launch: changed elements are pushed without a barrier for rounds."""
    return Fixpoint(*gpu_push.persistent(*operands, **static))


@op.register("dense", backend="pallas", refuse=gpu_dense.refuse, batched=vectors_vectorised)
def _dense(*operands, **static):
    """All elements in every step, in one launch, a grid barrier a step."""
    found = Fixpoint(*gpu_dense.run(*operands, **static))
    return finite(Call(*operands, **static), found)
