"""Pictures of four pages and three plots at 400 and 1,400 pixels, for people to look at.

`python docs/screenshots.py` after a build into docs/_build; needs Chromium and the extra `plot`.
Writes docs/_static/looked_at.
"""

import base64
import io
import pathlib
import tempfile

import jax
import jax.numpy as jnp
import matplotlib
from matplotlib.figure import Figure
from PIL import Image

import jaxspv as jsp

import browser  # isort: skip  (in this folder)

HERE = pathlib.Path(__file__).parent
FOLDER = HERE / "_static" / "looked_at"
PAGES = {  # name: page, dark, place to look at
    "start": ("start", False, ""),
    "concepts": ("concepts", False, ""),
    "coming_from": ("coming_from", True, ""),
    "notebook": ("examples/10_personalised_pagerank", True, ""),
}
HEIGHTS = {400: 1500, 1400: 1000}


def spy(ax):
    jsp.plot.spy(jsp.read_mtx(jsp.bundled("delaunay_n13")), ax)


def frontier(ax):
    jsp.plot.frontier(jsp.generators.rmat(jax.random.key(0), 14), 0, ax)


def draw(ax):
    A = jsp.read_mtx(jsp.bundled("karate"))
    scores = jsp.pagerank(A).scores
    style = {"labels": True, "node_size": 110, "edge_values": jnp.zeros(A.nse)}
    jsp.plot.draw(A, ax, values=scores, seed=3, **style)


PLOTS = (spy, frontier, draw)


def save(png, name):
    """Few colours: a picture of a page is small then."""
    picture = Image.open(io.BytesIO(png)).convert("RGB").quantize(96, dither=Image.Dither.NONE)
    picture.save(FOLDER / f"{name}.png", optimize=True)
    print(name, picture.size, (FOLDER / f"{name}.png").stat().st_size)


def main():
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as profile, browser.Browser(profile) as b:
        for name, (page, dark, place) in PAGES.items():
            for width, height in HEIGHTS.items():
                b.look(width, height, dark=dark)
                b.open((HERE / "_build" / f"{page}.html").as_uri() + place)
                save(base64.b64decode(b.picture()), f"page_{name}_{width}")
    matplotlib.rcParams["figure.dpi"] = 100
    for plot in PLOTS:
        for width in HEIGHTS:
            figure = Figure(figsize=(width / 100, min(3.6 * width / 400, 7)), layout="constrained")
            plot(figure.subplots())
            drawn = io.BytesIO()
            figure.savefig(drawn)
            save(drawn.getvalue(), f"plot_{plot.__name__}_{width}")


if __name__ == "__main__":
    main()
