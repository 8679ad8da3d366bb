"""Compiled programs are let go before a process runs out of memory maps."""

import jax
import jax.numpy as jnp
import pytest

import jaxspv as jsp
from jaxspv._core import compilation


def test_programs_are_forgotten_outside_of_traces(monkeypatch):
    programs = compilation.PROGRAMS
    if programs.most is None:
        pytest.skip("no limit of memory maps here")
    monkeypatch.setattr(programs, "most", 0)
    monkeypatch.setattr(programs, "EVERY", 1)
    dropped = []
    monkeypatch.setattr(jax, "clear_caches", lambda: dropped.append(programs.number()))
    jax.jit(lambda x: x * 3.25)(jnp.ones(7)).block_until_ready()
    assert programs.too_many
    jax.jit(lambda x: jsp.mxv(jsp.from_dense(jnp.eye(3), nse=3), x))(jnp.ones(3))
    assert not dropped, "not while something is traced"
    A = jsp.from_dense(jnp.eye(3))
    jsp.mxv(A, jnp.ones(3))
    assert dropped


def test_the_limit_lies_below_what_the_system_allows():
    if compilation.PROGRAMS.most is not None:
        assert 0 < compilation.PROGRAMS.number() < 2 * compilation.PROGRAMS.most
