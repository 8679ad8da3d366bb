"""The guard against the slow float32 scatter-add: which releases, one warning, another lowering."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxspv as jsp
from jaxspv._core import compat

pytestmark = pytest.mark.fast


@pytest.fixture
def jaxlib(monkeypatch):
    """Pretends that a release of jaxlib is installed and a backend is the default."""

    def pretend(version, backend="gpu"):
        compat.jaxlib_version.cache_clear()
        compat._warn_once.cache_clear()
        monkeypatch.setattr(compat.jax, "__version__", version)
        monkeypatch.setattr(compat.jaxlib, "__version__", version)
        monkeypatch.setattr(compat.jax, "default_backend", lambda: backend)

    yield pretend
    monkeypatch.undo()
    compat.jaxlib_version.cache_clear()
    compat._warn_once.cache_clear()


def test_version_numbers():
    assert compat.version_tuple("0.11.2.dev1") == (0, 11, 2)
    assert compat.version_tuple("0.12.0.1") == (0, 12, 0)
    assert compat.version_tuple("0.11.0rc1+local") == (0, 11)
    assert compat.version_tuple("junk") == ()


@pytest.mark.parametrize(
    "version,slow",
    [
        ("0.10.1", False),
        ("0.10.2", True),
        ("0.10.9", True),
        ("0.11.0", True),
        ("0.11.1", False),
        ("0.12.0.1", False),
        ("1.0", False),
    ],
)
def test_releases(jaxlib, version, slow):
    jaxlib(version, "cpu")
    assert compat.scatter_add_is_slow(np.float32) is slow
    for dtype in (np.float64, np.float16, np.int32, bool, jnp.bfloat16):
        assert not compat.scatter_add_is_slow(dtype)


def test_the_user_is_told_once_and_on_a_gpu_only(jaxlib):
    jaxlib("0.11.0", "cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compat.scatter_add_is_slow(np.float32)
    jaxlib("0.11.0", "gpu")
    with pytest.warns(compat.EfficiencyWarning, match="Install jaxlib >= 0.11.1") as sent:
        for _ in range(3):
            assert compat.scatter_add_is_slow(np.float32)
    assert len(sent) == 1


@pytest.mark.parametrize("version,avoided", [("0.11.0", True), ("0.11.2", False)])
def test_an_nvidia_gpu_gets_no_float_scatter_add(jaxlib, version, avoided):
    jaxlib(version, "cpu")

    def total(terms, ids):
        return jsp.monoids.plus.segment_reduce(terms, ids, 4)

    def adds(platform, dtype):
        """Whether the program lowered for a platform scatters by adding."""
        terms, ids = jnp.ones(9, dtype), jnp.arange(9) % 5
        lowered = (
            jax.jit(lambda *a: total(*a)).trace(terms, ids).lower(lowering_platforms=(platform,))
        )
        text = lowered.as_text()
        bodies = [part[: part.index("}) :")] for part in text.split('"stablehlo.scatter"')[1:]]
        return any("stablehlo.add" in body for body in bodies)

    assert adds("cuda", jnp.float32) is not avoided
    assert adds("cpu", jnp.float32)
    assert adds("cuda", jnp.int32)


def test_both_ways_agree_and_differentiate(jaxlib):
    terms, ids = jnp.asarray([1.0, 2.0, 4.0, 8.0]), jnp.asarray([1, 0, 1, 7])
    for version in ("0.11.0", "0.11.2"):
        jaxlib(version, "cpu")

        def loss(t):
            return (jsp.monoids.plus.segment_reduce(t, ids, 3) ** 2).sum()

        value, slope = jax.jit(jax.value_and_grad(loss))(terms)
        assert value == 29 and slope.tolist() == [10, 4, 10, 0]
