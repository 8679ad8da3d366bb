"""Predicates under vmap: one answer for the whole batch, so loops and switches stay as they are."""

import jax.numpy as jnp
from jax import Array
from jax.custom_batching import custom_vmap


@custom_vmap
def batch_any(flag: Array) -> Array:
    """`flag`; under vmap the OR over the batch, unbatched.

    A `while_loop` on it runs until every lane is done, without a select of its whole state: the
    body must leave a finished lane as it is.
    """
    return flag


@batch_any.def_vmap
def _any_rule(axis_size, in_batched, flag):
    del axis_size, in_batched
    return batch_any(jnp.any(flag, axis=0)), False


@custom_vmap
def batch_max(value: Array) -> Array:
    """`value`; under vmap the largest of the batch, unbatched.

    A `switch` on it picks one capacity that serves every lane, where a batched index would turn
    into running all of its branches.
    """
    return value


@batch_max.def_vmap
def _max_rule(axis_size, in_batched, value):
    del axis_size, in_batched
    return batch_max(jnp.max(value, axis=0)), False
