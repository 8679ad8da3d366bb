"""Pictures by what is drawn on their axes, and the cards that notebooks show."""

import builtins
import re

import jax
import networkx as nx
import numpy as np
import pytest

import jaxspv as jsp
from jaxspv.formats import FORMATS

matplotlib = pytest.importorskip("matplotlib")
from matplotlib.figure import Figure  # noqa: E402


@pytest.fixture
def ax():
    return Figure(layout="constrained").subplots()


@pytest.fixture(scope="module")
def star():
    """Vertex 0 joined with 1 to 9, and 5 vertices alone."""
    leaves = np.arange(1, 10)
    zero = np.zeros(9, int)
    return jsp.from_edges(np.r_[zero, leaves], np.r_[leaves, zero], shape=(15, 15))


def test_spy_of_a_small_matrix_shows_every_place(ax):
    D = np.random.default_rng(0).random((7, 11)) < 0.3
    assert jsp.plot.spy(jsp.from_dense(D.astype(np.float32), nse=50), ax) is ax
    np.testing.assert_array_equal(np.expm1(ax.images[0].get_array()).round(), D)
    assert f"{D.sum()} entries" in ax.get_title() and ax.get_ylim()[0] > ax.get_ylim()[1]


def test_spy_of_a_large_matrix_counts_entries_a_cell(ax):
    A = jsp.generators.rmat(jax.random.key(0), 10, 4)
    jsp.plot.spy(A, ax, bins=64)
    counts = np.expm1(ax.images[0].get_array()).round()
    assert counts.shape == (64, 64) and counts.sum() == int(A.count)
    want = A.to_scipy().toarray().reshape(64, 16, 64, 16).astype(bool).sum((1, 3))
    np.testing.assert_array_equal(counts, want)


def test_degree_distribution_is_that_of_networkx(ax, star):
    graph = nx.karate_club_graph()
    jsp.plot.degree_distribution(jsp.from_networkx(graph), ax)
    drawn = dict(zip(ax.lines[0].get_xdata(), ax.lines[0].get_ydata(), strict=True))
    want = np.bincount([d for _, d in graph.degree])
    assert drawn == {d: c for d, c in enumerate(want) if c}
    jsp.plot.degree_distribution(star, ax, direction="in")
    assert "5 of degree 0" in ax.get_title()


def test_frontier_has_the_sizes_of_the_levels_and_pulls_where_many_are(ax):
    A = jsp.generators.rmat(jax.random.key(0), 9, 16)
    source = int(np.argmax(np.diff(np.asarray(A.indptr))))
    jsp.plot.frontier(A, source, ax)
    levels = np.asarray(jsp.bfs(A, source).levels)
    bars = [int(bar.get_height()) for bar in ax.patches]
    assert bars == np.bincount(levels[levels >= 0]).tolist()
    words = [text.get_text() for text in ax.get_legend().get_texts()]
    assert words == ["pushes to the next", "the next pulls"]
    path = Figure().subplots()
    jsp.plot.frontier(jsp.from_edges(range(99), range(1, 100), shape=(100, 100)), 0, path)
    assert len({bar.get_facecolor() for bar in path.patches}) == 1  # nothing to pull


def test_tiles_are_counted(ax):
    A = jsp.from_edges([0, 1, 2, 40], [0, 1, 2, 3], shape=(50, 50))
    jsp.plot.tiles(A, ax, nt=16)
    assert [int(bar.get_height()) for bar in ax.patches] == [1, 1]  # one of 1 entry, one of 3
    assert ax.get_title() == "2 of 16 tiles hold entries"


def test_draw_places_vertices_and_edges(ax, star):
    pos = np.random.default_rng(0).random((15, 2))
    values = np.where(np.arange(15) < 9, np.arange(15), np.inf)
    jsp.plot.draw(star, ax, pos=pos, values=values, edge_values=np.ones(18), labels=True)
    lines, points = ax.collections
    np.testing.assert_allclose(points.get_offsets(), pos)
    assert len(lines.get_segments()) == 18 and len(ax.texts) == 15
    inks = {t.get_text(): t.get_color() for t in ax.texts}
    assert (inks["0"], inks["8"]) == ("white", "black")  # viridis: dark to light
    one_way = Figure().subplots()
    jsp.plot.draw(jsp.from_edges([0], [1], shape=(2, 2)), one_way)
    assert len(one_way.collections) == 3  # lines, an arrow, points


def test_forces_keep_neighbours_near():
    from jaxspv.plot.graphs import layout

    A = jsp.generators.grid2d(None, 6)
    row, col = (np.asarray(x) for x in A.rowcol())
    place = layout(row, col, 36)
    far = np.sqrt(((place[:, None] - place[None]) ** 2).sum(-1))
    assert np.isfinite(place).all() and far[row, col].mean() < 0.6 * far[far > 0].mean()


@pytest.mark.parametrize("draw", [jsp.plot.spy, jsp.plot.degree_distribution, jsp.plot.tiles])
def test_empty_matrices_have_pictures(draw):
    for shape in ((0, 0), (3, 3)):
        draw(jsp.from_edges([], [], shape=shape) if shape != (0, 0) else jsp.from_dense(
            np.zeros(shape, np.float32)
        ), Figure().subplots())  # fmt: skip


def test_wrong_arguments_are_refused(ax, star):
    with pytest.raises(ValueError, match="`bins`"):
        jsp.plot.spy(star, ax, bins=0)
    with pytest.raises(TypeError, match="`A` must be a sparse matrix or a Graph; got list"):
        jsp.plot.spy([[1]], ax)
    with pytest.raises(ValueError, match='`direction` must be "out" or "in"'):
        jsp.plot.degree_distribution(star, ax, direction="up")
    with pytest.raises(ValueError, match="`pos` must be given beyond"):
        jsp.plot.draw(jsp.generators.grid2d(None, 50), ax)
    with pytest.raises(ValueError, match=r"`values` must have shape \(15,\)"):
        jsp.plot.draw(star, ax, values=[1, 2])
    with pytest.raises(ValueError, match="traced"):
        jax.jit(lambda A: jsp.plot.spy(A, ax) and 0)(star)


def test_without_matplotlib_the_error_names_the_extra(monkeypatch, star):
    real = builtins.__import__

    def refuse(name, *rest):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match=r"jaxspv\[plot\]"):
        jsp.plot.spy(star)


def rows_of(card):
    cells = re.findall(r"<td[^>]*>(.*?)</td>", card)
    return dict(zip(cells[::2], cells[1::2], strict=True))


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_a_matrix_has_a_card_with_a_picture(format, star):
    A = star.asformat(format)
    card = A._repr_html_()
    assert rows_of(card)["shape"] == "(15, 15)" and type(A).__name__ in card
    assert rows_of(card)["entries"].startswith("18 in") and card.count("<rect") == 18


def test_cards_of_vectors_graphs_plans_and_results(star):
    v = jsp.vector_from_entries([1, 3], [1.0, 2.0], 9, nse=4)
    assert rows_of(v._repr_html_())["entries"] == "2 in 4 slots"
    G = jsp.prepare(star, for_="bfs")
    assert rows_of(G._repr_html_())["prepared for"] == "bfs"
    assert "<pre>bfs" in jsp.explain("bfs", G)._repr_html_()
    shown = rows_of(jsp.bfs(G, 0)._repr_html_())
    assert shown == {"levels": "int32[15]", "parents": "int32[15]", "num_levels": "2"}


def test_cards_survive_tracing_placeholders_and_gradients(star):
    seen = []

    @jax.jit
    def f(A):
        seen.append(A._repr_html_() + jsp.bfs(A, 0)._repr_html_())
        return 0

    f(star)
    assert "float32[18]" in seen[0] and "<rect" not in seen[0]
    for hole in (None, object()):
        assert "CSR" in jax.tree.map(lambda _, h=hole: h, star)._repr_html_()
    assert "CSR" in jsp.grad(lambda A: jsp.sssp(A, 0).distances[1])(star)._repr_html_()
