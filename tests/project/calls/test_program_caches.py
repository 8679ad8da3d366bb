"""Compiled programs are let go before a process runs out of memory maps."""

import jax
import jax.numpy as jnp
import pytest

import jaxspv as jsp
from jaxspv._core import compilation
from jaxspv._core.platforms import situation


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


def test_traces_are_let_go_once_their_program_is_compiled(monkeypatch):
    gone, traced = [], []
    let_go = compilation._let_traces_go
    monkeypatch.setattr(compilation, "_let_traces_go", lambda run: gone.append(1) or let_go(run))

    def double(x):
        traced.append(x.shape)
        return 2 * x

    program = compilation.compiled_for(situation(), double)
    for _ in range(3):
        assert program(jnp.ones(3)).tolist() == [2, 2, 2]
    program(jnp.ones(4))
    assert program(jnp.ones(3)).tolist() == [2, 2, 2]
    assert traced == [(3,), (4,)] and len(gone) == 2
    with jax.default_matmul_precision("highest"):  # another context is another program
        program(jnp.ones(3))
    assert len(traced) == 3 and len(gone) == 2, "traced again: JAX may need what it keeps"
    program(jnp.ones(3))
    assert len(traced) == 3
