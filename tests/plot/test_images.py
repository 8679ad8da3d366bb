"""Pictures as pictures: each as it was looked at, nothing cut or overlapping, small and large.

`python tests/plot/test_images.py` draws them anew into tests/plot/images: look before you commit.
"""

import io
import itertools
import pathlib
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxspv as jsp

pytest.importorskip("matplotlib")
import matplotlib  # noqa: E402
from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

pytestmark = pytest.mark.long
IMAGES = pathlib.Path(__file__).parent / "images"
LARGEST_RMS = 12.0  # of pixels 0 to 255: edges drawn a little otherwise by another version


def karate():
    return jsp.read_mtx(jsp.bundled("karate"))


def draw(ax, A=None, **more):
    A = karate() if A is None else A
    n, none = A.shape[0], jnp.zeros(A.nse)
    jsp.plot.draw(A, ax, values=range(n), edge_values=none, seed=3, node_size=70, **more)


KINDS = {
    "spy": lambda ax: jsp.plot.spy(karate(), ax),
    "spy_by_density": lambda ax: jsp.plot.spy(jsp.read_mtx(jsp.bundled("minnesota")), ax, bins=64),
    "degrees": lambda ax: jsp.plot.degree_distribution(
        jsp.generators.rmat(jax.random.key(0), 9, 8), ax
    ),
    "frontier": lambda ax: jsp.plot.frontier(jsp.generators.rmat(jax.random.key(0), 10, 8), 0, ax),
    "tiles": lambda ax: jsp.plot.tiles(jsp.generators.rmat(jax.random.key(0), 9, 8), ax, nt=16),
    "draw": draw,
}
WRONG = {  # what must not pass for it: another source, one entry less, other colours
    "spy": lambda ax: jsp.plot.spy(karate().T[:30], ax),
    "frontier": lambda ax: jsp.plot.frontier(jsp.generators.rmat(jax.random.key(1), 10, 8), 0, ax),
    "draw": lambda ax: draw(ax, cmap="magma"),
}


def drawn(kind, width=300, height=240, words=True):
    """The figure of a kind, drawn once on a canvas of pixels."""
    layout = "constrained" if words else "none"
    figure = Figure(figsize=(width / 100, height / 100), dpi=100, layout=layout)
    canvas = FigureCanvasAgg(figure)
    kind(figure.subplots())
    if not words:  # letters are the font's and its version's
        for text in figure.findobj(matplotlib.text.Text):
            text.set_visible(False)
        figure.subplots_adjust(0.05, 0.05, 0.85, 0.95)
    canvas.draw()
    return figure


def pixels(kind):
    return np.asarray(drawn(kind, words=False).canvas.buffer_rgba())[..., :3].astype(float)


def apart(kind, name):
    want = np.round(255 * matplotlib.image.imread(IMAGES / f"{name}.png")[..., :3])
    return np.sqrt(np.mean((pixels(kind) - want) ** 2))


@pytest.mark.parametrize("name", KINDS)
def test_a_picture_is_the_one_that_was_looked_at(name):
    assert apart(KINDS[name], name) < LARGEST_RMS
    if name in WRONG:
        assert apart(WRONG[name], name) > LARGEST_RMS


@pytest.mark.parametrize("width", [400, 1400])
@pytest.mark.parametrize("name", KINDS)
def test_nothing_is_cut_and_nothing_overlaps(name, width):
    figure = drawn(KINDS[name], width, 320 if width == 400 else 700)
    ax = figure.axes[0]
    assert figure.bbox.contains(*ax.get_tightbbox().p0)
    assert figure.bbox.contains(*ax.get_tightbbox().p1)
    texts = [t for t in figure.findobj(matplotlib.text.Text) if t.get_visible() and t.get_text()]
    boxes = {t.get_text(): t.get_window_extent() for t in texts if in_view(t, ax)}
    for (one, a), (two, b) in itertools.combinations(boxes.items(), 2):
        assert not a.padded(-1).overlaps(b.padded(-1)), f"{one!r} covers {two!r}"
    if (legend := ax.get_legend()) is not None:
        bars = [bar.get_window_extent() for bar in ax.patches]
        assert not any(bar.padded(-1).overlaps(legend.get_window_extent()) for bar in bars)


def in_view(text, ax):
    """Not a tick's label outside of the limits, which is kept and not drawn."""
    for axis in (ax.xaxis, ax.yaxis):
        low, high = sorted(axis.get_view_interval())
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
            if text in (tick.label1, tick.label2):
                return low <= tick.get_loc() <= high and text is tick.label1
    return True


def test_points_that_forces_place_can_be_told_apart():
    from jaxspv.plot.graphs import layout

    row, col = (np.asarray(x) for x in karate().rowcol())
    for seed in range(5):
        place = layout(row, col, 34, seed=seed)
        far = np.sqrt(((place[:, None] - place[None]) ** 2).sum(-1)) + np.eye(34) * 9
        assert far.min() > 0.03 * np.ptp(place, axis=0).max()


if __name__ == "__main__":
    from PIL import Image

    IMAGES.mkdir(exist_ok=True)
    for name in sys.argv[1:] or KINDS:
        buffer = io.BytesIO()
        picture = Image.fromarray(pixels(KINDS[name]).astype(np.uint8))
        picture.save(buffer, "png", optimize=True)
        (IMAGES / f"{name}.png").write_bytes(buffer.getvalue())
        print(name, len(buffer.getvalue()))
