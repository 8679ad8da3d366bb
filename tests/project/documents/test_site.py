"""The built site in a headless browser: pages small and large, light and dark; copying, search.

Needs Chromium, which is held by two pipes (docs/browser.py): nothing else is installed for it.
"""

import functools
import http.server
import json
import sys
import threading

import pytest
from built_site import DOCS, site

sys.path.insert(0, str(DOCS))
import browser as headless  # noqa: E402

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(headless.find() is None, reason="no Chromium: set JAXSPV_BROWSER"),
]
LIKED = ("index", "start", "concepts", "coming_from", "cookbook", "examples/09_road_network")
SEEN = """(() => {
  const all = [...document.querySelectorAll('article *')];
  const scrolls = e => { for (; e.tagName != 'ARTICLE'; e = e.parentElement)
    if (['auto', 'scroll', 'hidden'].includes(getComputedStyle(e).overflowX)) return true; };
  const colors = e => [getComputedStyle(e).color, getComputedStyle(document.body).backgroundColor];
  return {
    wide: document.documentElement.scrollWidth,
    out: all.filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !scrolls(e)
      && e.getBoundingClientRect().width).map(e => e.tagName),
    without_copy: [...document.querySelectorAll('div.highlight')].filter(
      e => !e.querySelector('button.copybtn')).length,
    colors: colors(document.querySelector('article h1')),
    broken: [...document.images].filter(i => !i.naturalWidth).map(i => i.src),
    shrunk: [...document.querySelectorAll('article img[src$=".svg"]')].filter(
      i => i.clientWidth < 0.9 * i.naturalWidth).map(i => i.src),
    empty: !document.querySelector('article').innerText.trim(),
  };
})()"""


@pytest.fixture(scope="module")
def built():
    return site()


@pytest.fixture(scope="module")
def web(built):
    """The address of the site, served as on the web: from files a search shows no excerpts."""

    class Silent(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    handler = functools.partial(Silent, directory=built)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with headless.Browser(str(tmp_path_factory.mktemp("profile"))) as opened:
        yield opened


def pages(built):
    return sorted(str(p.relative_to(built))[:-5] for p in built.rglob("*.html"))


def brightness(color):
    red, green, blue = (int(x) for x in color.strip("rgba()").split(",")[:3])
    return (0.299 * red + 0.587 * green + 0.114 * blue) / 255


@pytest.mark.parametrize("width, dark", [(400, False), (400, True), (1400, False), (1400, True)])
def test_every_page_opens_whole_and_without_an_error(built, web, browser, width, dark):
    """On the screens of a telephone and a desk: nothing sticks out, no picture is missing or too
    small to read, all code can be copied, letters stand out from the paper."""
    browser.look(width, dark=dark)
    names = pages(built)
    assert len(names) > 50 and set(LIKED) <= set(names)
    wrong = {}
    for name in names if width == 400 and not dark else LIKED:
        browser.open(f"{web}/{name}.html")
        if name in ("search", "genindex", "py-modindex"):
            assert not browser.errors, (name, browser.errors)
            continue
        seen = browser.ask(SEEN)
        ink, paper = map(brightness, seen.pop("colors"))
        assert ink - paper > 0.5 if dark else paper - ink > 0.5, name
        wide = seen.pop("wide") > width
        if wide or browser.errors or any(seen.values()):
            wrong[name] = {"wide": wide, "errors": browser.errors} | seen
    assert not wrong, json.dumps(wrong, indent=1)


def test_search_finds_names_and_words(web, browser):
    browser.look(1000)
    for word, page in (("ewise_union", "api/operations"), ("overflow", "concepts")):
        browser.open(f"{web}/search.html?q={word}")
        link = f"#search-results li a[href^='{page}.html']"
        assert browser.wait(f'document.querySelectorAll("{link}").length'), word
        assert not browser.errors
    browser.open(f"{web}/search.html?q=zyxwvu")
    browser.wait("document.querySelector('#search-results').innerText.includes('did not match')")


def test_a_click_copies_the_code_of_a_block_and_no_prompt(web, browser):
    browser.look(1000)
    copied = """new Promise(done => {
      addEventListener('copy', () => done(document.activeElement.value), {once: true});
      document.querySelectorAll('button.copybtn')[%d].click();
    })"""
    browser.open(f"{web}/start.html")
    code = browser.wait("[...document.querySelectorAll('div.highlight pre')].map(e => e.innerText)")
    assert browser.ask(copied % 1).strip() == code[1].strip() != ""
    browser.open(f"{web}/networkx.html")
    assert browser.ask("document.querySelector('div.highlight pre').innerText").startswith(">>> ")
    assert browser.ask(copied % 0).startswith("import networkx as nx\nG = ")


def test_a_reader_chooses_light_or_dark_and_finds_the_menu_on_a_narrow_screen(web, browser):
    browser.look(1400)
    browser.open(f"{web}/start.html")
    papers = set()
    for _ in range(3):  # by the reader's system, light, dark
        browser.ask("document.querySelector('.content-icon-container .theme-toggle').click()")
        papers.add(browser.ask("getComputedStyle(document.body).backgroundColor"))
    assert len(papers) == 2
    browser.look(400)
    browser.open(f"{web}/start.html")
    left = "document.querySelector('.sidebar-drawer').getBoundingClientRect().left"
    assert browser.ask(left) < 0
    browser.ask("document.querySelector('label[for=__navigation]').click()")
    browser.wait(f"{left} >= 0")


def test_words_of_figures_stay_inside_and_apart(browser):
    browser.look(800)
    boxes = """[...document.querySelectorAll('text')].map(t => {
      const b = t.getBoundingClientRect(); return [b.left, b.top, b.right, b.bottom]; })"""
    size = "['width', 'height'].map(a => +document.documentElement.getAttribute(a))"
    figures = sorted((DOCS / "_static").glob("*.svg"))
    assert len(figures) > 10
    for figure in figures:
        browser.open(figure.as_uri())
        right, bottom = browser.ask(size)
        found = browser.ask(boxes)
        assert (found or figure.stem == "favicon") and right <= 360, figure.name
        for k, (x1, y1, x2, y2) in enumerate(found):
            assert x1 >= 2 and y1 >= 2 and x2 <= right - 2 and y2 <= bottom - 2, (figure.name, k)
            for u1, v1, u2, v2 in found[k + 1 :]:
                apart = x2 <= u1 or u2 <= x1 or y2 - 3 <= v1 or v2 - 3 <= y1
                assert apart, (figure.name, k)
