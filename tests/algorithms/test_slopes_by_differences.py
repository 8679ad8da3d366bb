"""Gradients of every algorithm against finite differences on karate, minnesota and rome99."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxspv as jsp
from tests.graph_files import need

jax.config.update("jax_enable_x64", False)
EPS = 1e-6


def load(name):
    """The largest weights are 3, all different, so that no two paths tie."""
    A = jsp.read_mtx(need(name)) if name == "rome99" else jsp.bundled(name)
    rng = np.random.default_rng(0)
    return A.asformat("csr"), rng.uniform(1, 3, A.nse)
