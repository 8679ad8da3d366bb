"""What kernels ask of the GPU they are traced for: CTAs that are resident, shared memory it has."""

import functools
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src.mesh import AbstractDevice
from jax.sharding import AbstractMesh, AxisType

import jaxspv as jsp
from jaxspv import TileRule
from jaxspv._core import compat
from jaxspv._core.compat import kernels_refused
from jaxspv._core.platforms import using
from jaxspv.sharding import operation
from pallas_kernels.bfs.api import bfs, default_bfs_config
from pallas_kernels.bfs.multi_source import bfs_sources
from pallas_kernels.bfs.tile import Search, Side, tile_bfs
from pallas_kernels.components.one_gpu import components
from pallas_kernels.cores import cores
from pallas_kernels.fixpoint.pull import Steps, fixpoint_dense
from pallas_kernels.fixpoint.push import fixpoint_push
from pallas_kernels.independent import in_order, waiting, waiting_colors
from pallas_kernels.layouts.adjacency import Adjacency
from pallas_kernels.layouts.sliced_rows import prepare_pagerank
from pallas_kernels.layouts.tile_bitmasks import Tiling, count_tiles
from pallas_kernels.pagerank.one_gpu import Limits, pagerank
from pallas_kernels.products.spmm import coo_spmm
from pallas_kernels.products.spmspv import Entries, Result, Tiles, spmspv_push, spmspv_tile
from pallas_kernels.products.spmv import csr_spmv
from pallas_kernels.products.spmv_vjp import HOT, csr_vjp
from pallas_kernels.simt import device, mosaic
from pallas_kernels.simt.scalar_jaxpr import ScalarSemiring, trace
from pallas_kernels.sssp.api import sssp
from pallas_kernels.sssp.tight_edges import first_tight
from pallas_kernels.triangles.count import triangles
from pallas_kernels.triangles.upward import Upward, upward

# kind -> (multiprocessors, KiB of shared memory of a CTA): NVIDIA's data sheets, CUDA C++
# Programming Guide, "Technical Specifications per Compute Capability"
GPUS = {
    "NVIDIA A100-SXM4-80GB": (108, 163),
    "NVIDIA H100 80GB HBM3": (132, 227),
    "NVIDIA H100 PCIe": (114, 227),
    "NVIDIA H200": (132, 227),
    "NVIDIA B200": (148, 227),
    "NVIDIA L4": (58, 99),
    "NVIDIA GeForce RTX 4090": (128, 99),
    "NVIDIA RTX PRO 6000 Blackwell Server Edition": (188, 99),
}
N, NNZ, F32 = 100_000, 400_000, jnp.float32


def array(*shape, dtype=jnp.int32):
    return jax.ShapeDtypeStruct(shape, dtype)


CSR = (array(N + 1), array(NNZ))
GRAPH, LARGE = Adjacency(*CSR), Adjacency(array(10**6 + 1), array(NNZ))
WEIGHTED = (*CSR, array(NNZ, dtype=F32))
VECTOR = array(N, dtype=F32)
SPARSE = (array(30), array(30, dtype=F32), array())
SOURCE = array()
ROWS = prepare_pagerank(np.arange(301), (np.arange(300) + 1) % 300, np.ones(300, np.float32))
ROWS = {name: array(*x.shape, dtype=x.dtype) for name, x in ROWS.items()}
WORDS = array(50 * 32, dtype=jnp.uint32)
TILES = Side(array(N // 32 + 1), array(50), WORDS, array(N + 1), array(9))


def fixpoint(x, prepared):
    return fixpoint_dense(
        x,
        (),
        (),
        Steps(
            ScalarSemiring.of(jax.lax.add, jax.lax.min, np.inf, F32),
            trace(lambda x, y, i: jnp.minimum(x, y), F32, F32, jnp.int32),
            lambda i, reached, unchanged, *_: (unchanged, unchanged),
        ),
        prepared=prepared,
    )


def low_degree(graph, source, table):
    return bfs(graph, source, prepared={"adjacency": table})


push = functools.partial(fixpoint_push, add="min", mul=jax.lax.add)
PRODUCT = Result(N, 64, "add", jax.lax.mul)
TILED = (array(N // 16 + 2), array(77), array(78), array(200, dtype=jnp.uint32))
TILED = (*TILED, array(540, dtype=F32), array(40), array(40))
BARRIER = {  # kernels whose CTAs wait for each other
    "bfs": (bfs, GRAPH, SOURCE),
    "bfs of low degree": (low_degree, GRAPH, SOURCE, array(N, 4)),
    "bfs of large low degree": (
        low_degree,
        Adjacency(array(10**6 + 1), array(NNZ)),
        SOURCE,
        array(10**6, 4),
    ),
    "bfs_sources": (bfs_sources, GRAPH, array(32)),
    "tile_bfs": (
        functools.partial(tile_bfs, search=Search(N, 32, TileRule())),
        TILES,
        TILES,
        SOURCE,
    ),
    "sssp": (sssp, WEIGHTED, SOURCE, array(dtype=F32)),
    "fixpoint_push": (push, WEIGHTED, VECTOR),
    "fixpoint_dense": (fixpoint, array(300, dtype=F32), ROWS),
    "pagerank": (
        lambda s, p, rows: pagerank(s, p, Limits(0.85, 1e-6, 100, 0), prepared=rows),
        array(300, dtype=F32),
        array(300, dtype=F32),
        ROWS,
    ),
    "components": (components, *CSR),
    "cores": (cores, *CSR),
    "independent_set": (lambda *a: waiting.independent_set(*a), *CSR, array(N)),
    "colors": (lambda *a: waiting_colors.coloring(*a), *CSR, array(N)),
    "colors in order": (lambda *a: in_order.coloring(*a), *CSR, array(N)),
    "spmspv_push": (lambda *a: spmspv_push(*a, PRODUCT), *WEIGHTED, Entries(*SPARSE)),
    "spmspv_tile": (
        lambda x, *a: spmspv_tile(Tiles(*a, nt=16, columns=N), x, PRODUCT),
        Entries(*SPARSE),
        *TILED,
    ),
}
FREE = {  # any number of CTAs is right
    "csr_spmv": (
        lambda *a: csr_spmv(*a, semiring=ScalarSemiring.of(jax.lax.mul, jax.lax.add, 0.0, F32)),
        *WEIGHTED,
        VECTOR,
    ),
    "csr_vjp": (lambda p, j, a, w: csr_vjp(p, j, w, N, data=a, hot=HOT[1]), *WEIGHTED, VECTOR),
    "first_tight": (functools.partial(first_tight, rule=0), *WEIGHTED, VECTOR, VECTOR),
    "upward_edges": (upward, *CSR),
    "triangles": (
        lambda p, i, *edges: triangles(p, i, Upward(*edges)),
        *CSR,
        *(array(size) for size in (2 * N, NNZ, NNZ, 64)),
    ),
    "count_tiles": (functools.partial(count_tiles, tiling=Tiling(32, N, 2)), *CSR),
}


def on(kind, cores=None):
    """The context of an abstract device."""
    abstract = AbstractDevice(device_kind=kind, num_cores=cores, platform="gpu")
    mesh = AbstractMesh((1,), ("x",), axis_types=(AxisType.Auto,), abstract_device=abstract)
    return jax.sharding.use_abstract_mesh(mesh)


@pytest.fixture
def launched(monkeypatch):
    """(CTAs, bytes of shared memory) of every launch that is traced."""
    found, run = [], mosaic.run

    def spy(job, *rest):
        found.append((job.ctas, 4 * job.shared_words))
        return run(job, *rest)

    monkeypatch.setattr(mosaic, "run", spy)
    return found


@pytest.mark.parametrize("kind", GPUS)
@pytest.mark.parametrize("name", [*BARRIER, *FREE])
def test_a_launch_fits_the_gpu_it_is_lowered_for(name, kind, launched):
    cores, kib = GPUS[kind]
    function, *operands = (BARRIER | FREE)[name]
    with on(kind):
        traced = jax.jit(lambda *a: function(*a)).trace(*operands)  # a cache of its own
        text = traced.lower(lowering_platforms=("cuda",)).as_text()
    assert text.count("custom_call @mosaic_gpu") == 1
    ((ctas, shared),) = launched
    assert ctas == cores if name in BARRIER else ctas % cores == 0
    assert shared <= kib * 1024


@pytest.mark.skipif(kernels_refused() is not None, reason="the kernels need a newer JAX")
def test_an_operation_is_lowered_for_the_device_of_the_mesh(launched):
    """Forms are traced on no mesh; the device stays."""
    A = jsp.from_edges([0, 1, 2], [1, 2, 3], shape=(4, 4))
    for kind in GPUS:
        with on(kind):
            call = jax.jit(lambda A: jsp.connected_components(A, backend="pallas").labels)
            call.trace(A).lower(lowering_platforms=("cuda",))
    assert [ctas for ctas, _ in launched] == [cores for cores, _ in GPUS.values()]


def test_large_shared_memory_is_used(launched):
    """So that the sizes above are not merely those of the least GPU."""
    function, *operands = FREE["csr_vjp"]
    for kind in ("NVIDIA L4", "NVIDIA H200"):
        with on(kind):
            jax.jit(lambda *a: function(*a)).trace(*operands)
            assert default_bfs_config(10**6, low_degree=True).shared_bits == (kind == "NVIDIA H200")
            wide = default_bfs_config(2**21, low_degree=True, quads=1)
            assert not wide.shared_bits and wide.solo_out < wide.local_most and wide.threads == 256
    small, large = (shared for _, shared in launched)
    assert small <= 99 * 1024 < 4 * HOT[1] <= large


@pytest.mark.parametrize(("kind", "vectors"), [("NVIDIA A100", False), ("NVIDIA H200", True)])
def test_vectors_are_added_by_one_instruction_where_gpus_have_it(kind, vectors):
    """PTX ISA, `red`: vectors of floats from compute capability 9.0 on; below, one by one."""
    entries = array(NNZ), array(NNZ), array(NNZ, dtype=F32), array(N, 16, dtype=F32)
    times = ScalarSemiring.of(jax.lax.mul, jax.lax.add, 0.0, F32)
    with on(kind):
        traced = jax.jit(lambda *a: coo_spmm(*a, n=N, semiring=times)).trace(*entries)
        text = traced.lower(lowering_platforms=("cuda",)).as_text()
    assert ("red.relaxed.gpu.global.add.v4.f32" in text) == vectors
    assert ("red.relaxed.gpu.global.add.f32" in text) == (not vectors)


@pytest.mark.parametrize(
    ("kind", "given", "cores"),
    [
        ("NVIDIA H200", 60, 60),  # what the device says goes before what its kind says
        ("NVIDIA H200 MIG 1g.18gb", 16, 16),
        ("NVIDIA H200 MIG 3g.71gb", None, 42),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", None, 14),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", None, 14),
        ("NVIDIA GeForce RTX 4090 D", None, 14),
        ("NVIDIA RTX A3000", None, 14),  # no A30
        ("NVIDIA H2000", None, 14),
    ],
)
def test_multiprocessors_of_an_abstract_device(kind, given, cores):
    with on(kind, given):
        assert device.resident_ctas() == cores


def present(kind="NVIDIA H200", **said):
    return types.SimpleNamespace(device_kind=kind, **said)


@pytest.fixture
def gpus(monkeypatch):
    """Puts GPUs into this process."""

    def put(*devices):
        monkeypatch.setattr(jax, "local_devices", lambda backend=None: list(devices))

    return put


def test_gpus_of_this_process(gpus):
    full = present(core_count=132, shared_memory_per_block_optin=232448, compute_capability="9.0")
    a100 = present(
        "NVIDIA A100-SXM4-40GB",
        core_count=108,
        shared_memory_per_block_optin=166912,
        compute_capability="8.0",
    )
    gpus(full)
    assert device.target() == device.Device("NVIDIA H200", 132, 232448, (9, 0))
    gpus(full, a100)  # a program is right on either
    assert device.target().cores == 108
    assert device.target().shared_bytes == 166912
    assert device.target().capability == (8, 0)
    with on("NVIDIA H200"):  # named: that one alone
        assert device.target() == device.Device("NVIDIA H200", 132, 232448, (9, 0))
    with on("NVIDIA L4"):  # named, and not here
        assert device.resident_ctas() == 58
    gpus(present("NVIDIA H200 MIG 1g.18gb", core_count=16, compute_capability="9.0"))
    assert device.resident_ctas() == 16
    assert device.target().shared_bytes == 227 * 1024
    gpus(present("NVIDIA A100-SXM4-40GB"))  # says nothing: what its kind says
    assert device.target() == device.Device("NVIDIA A100-SXM4-40GB", 108, 163 * 1024, (8, 0))


def test_an_unknown_gpu_gets_a_grid_that_every_gpu_holds(gpus):
    gpus()
    assert device.resident_ctas() == device.FEWEST_CORES
    assert device.target().shared_bytes == 99 * 1024
    assert device.refused() is None


def test_gpus_that_are_refused(gpus, monkeypatch):
    monkeypatch.setattr(compat, "jax_version", lambda: compat.KERNELS_FROM)
    with on("Tesla T4"):
        assert "compute capability 8.0, and Tesla T4 has 7.5" in str(compat.kernels_refused())
    gpus(present("NVIDIA TITAN V", core_count=80, compute_capability="7.0"))
    assert "NVIDIA TITAN V has 7.0" in str(compat.kernels_refused())
    gpus(present("NVIDIA X", shared_memory_per_block_optin=65536, compute_capability="9.9"))
    assert "65536" in str(compat.kernels_refused())
    for kind in GPUS:
        with on(kind):
            assert compat.kernels_refused() is None


@pytest.mark.parametrize(
    ("version", "default"),
    [("8.0", False), ("8.9", False), ("9.0", True), ("10.3", True), ("12.0", False), (None, False)],
)
def test_kernels_over_several_gpus_are_the_default_where_hosts_link_them(version, default):
    said = {} if version is None else {"compute_capability": version}
    mesh = types.SimpleNamespace(devices=np.array([present(**said)] * 2))
    reason = operation.unasked(mesh)
    assert (reason is None) == default
    with using("pallas"):
        assert operation.unasked(mesh) is None  # asked for
