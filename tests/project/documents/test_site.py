"""The built site in a headless browser: widths, themes, copying, search; needs chromium."""

import os
import re
import shutil
import subprocess
import sys

import pytest
from test_docs import DOCS

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
PAGES = (
    *("index", "what", "start", "concepts", "coming_from", "cookbook", "gradients", "kernels"),
    *("papers", "performance", "api/operations", "api/plot", "examples/09_road_network"),
)
PROBE = """<script>addEventListener('load', () => setTimeout(() => {
  const d = document.body.dataset, all = [...document.querySelectorAll('article *')];
  const scrolls = e => { for (; e.tagName != 'ARTICLE'; e = e.parentElement)
    if (['auto', 'scroll', 'hidden'].includes(getComputedStyle(e).overflowX)) return true; };
  d.probeWide = document.documentElement.scrollWidth;
  d.probeOut = all.filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !scrolls(e)
    && e.getBoundingClientRect().width).map(e => e.tagName).join();
  d.probeCopy = document.querySelectorAll('button.copybtn').length;
  d.probeBlocks = document.querySelectorAll('div.highlight pre').length;
  d.probePaper = getComputedStyle(document.body).backgroundColor;
  d.probeBroken = [...document.images].filter(i => !i.naturalWidth).map(i => i.src).join();
}, 300));</script></body>"""
pytestmark = [pytest.mark.long, pytest.mark.skipif(BROWSER is None, reason="chromium is not there")]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    for needed in ("sphinx", "furo", "myst_nb", "sphinx_copybutton", "sphinx_design"):
        pytest.importorskip(needed)
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-E", "-b", "html", "-d", folder / "trees"]
    subprocess.run([*command, DOCS, folder / "html"], check=True, timeout=500)
    return folder / "html"


def opened(address, width, profile):
    """The document as it stands after its scripts have run."""
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"]
    options += [f"--window-size={width},1200", "--virtual-time-budget=5000", "--dump-dom"]
    done = subprocess.run([BROWSER, *options, address], capture_output=True, text=True, timeout=120)
    return done.stdout


def probed(site, page, width, theme, profile):
    path = site / f"{page}.html"
    probe = path.with_name(f"probe-{width}-{theme}-{os.path.basename(page)}.html")
    text = path.read_text().replace("</body>", PROBE)
    text = re.sub(
        r"document\.body\.dataset\.theme = [^;]*;",
        f'document.body.dataset.theme = "{theme}";',
        text,
    )
    probe.write_text(text)
    dom = opened(probe.as_uri(), width, profile)
    return dict(re.findall(r'data-probe-(\w+)="([^"]*)"', dom))


@pytest.mark.parametrize("page", PAGES)
def test_nothing_is_cut_and_all_can_be_copied(site, page, tmp_path):
    papers = set()
    for width, theme in ((500, "light"), (1400, "dark")):  # 500: the least it opens
        seen = probed(site, page, width, theme, tmp_path)
        assert int(seen["wide"]) <= width and seen["out"] == "", seen
        assert seen["broken"] == "" and int(seen["copy"]) >= int(seen["blocks"]) > -1
        papers.add(seen["paper"])
    assert len(papers) == 2  # light and dark differ


def test_search_finds_names_and_words(site, tmp_path):
    for word, page in (("ewise_union", "api/operations"), ("overflow", "concepts")):
        dom = opened(f"{(site / 'search.html').as_uri()}?q={word}", 1000, tmp_path)
        assert f'href="{page}.html' in dom.split('id="search-results"')[1], word
