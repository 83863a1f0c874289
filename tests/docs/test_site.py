"""The site that `make docs` has made: its pages and links, and what a person sees of it."""

import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

pytestmark = [pytest.mark.site, pytest.mark.xdist_group("site")]

ROOT = Path(__file__).resolve().parents[2]
SCREENSHOTS = ROOT / ".cache" / "screenshots" / "docs"
# One page of each kind: the start, a part, a lesson, two of the reference, the core, a table of measurements.
SHOWN = [
    "index", "docs/how-to", "notebooks/06-locks", "notebooks/01-messages-and-deadlocks", "docs/settings",
    "docs/reference/MPI/Win", "docs/reference/slots", "docs/reference/mpiexec", "docs/layers/progress", "docs/glossary",
    "docs/measurements/one_sided",
]  # fmt: skip
NOT_LOADED = ("canonical", "search", "index", "next", "prev")  # links to other pages
WIDTHS = {"phone": 390, "desk": 1280}


class Page(HTMLParser):
    """The links of a page, what it loads, and its anchors."""

    def __init__(self, path):
        super().__init__()
        self.path = path
        self.links, self.loads, self.anchors = [], [], set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        """Note what a tag refers to."""
        attrs = dict(attrs)
        self.anchors |= {attrs[key] for key in ("id", "name") if attrs.get(key)}
        if tag == "a" and "href" in attrs:
            self.links.append(attrs["href"])
        elif tag in ("script", "img", "link", "iframe", "source") and attrs.get("rel") not in NOT_LOADED:
            self.loads += [attrs[key] for key in ("src", "href") if attrs.get(key)]


@cache
def parsed(path):
    """Return a page."""
    return Page(path)


@pytest.fixture(scope="module")
def pages(html):
    """All pages."""
    return [parsed(path) for path in sorted(html.rglob("*.html"))]


def test_every_page_and_lesson_is_there(html):
    sources = [*(ROOT / "docs").glob("*.md"), *(ROOT / "notebooks").glob("*.ipynb")]
    assert len(sources) > 40
    for source in sources:
        assert (html / source.relative_to(ROOT)).with_suffix(".html").exists(), source.name


def test_every_class_of_mpi_has_a_page(html):
    from manual.reference import stub

    classes = stub().classes
    assert {"Win", "Comm", "File", "Request"} <= set(classes)
    for name, members in classes.items():
        text = (html / "docs" / "reference" / "MPI" / f"{name}.html").read_text(encoding="utf-8")
        for member in members:
            assert f'id="gormapy.MPI.{name}.{member}"' in text, f"{name}.{member}"


def test_links_inside_lead_somewhere(pages):
    followed = 0
    for page in pages:
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme:
                continue
            target = (page.path.parent / unquote(parts.path)).resolve() if parts.path else page.path
            assert target.exists(), f"{page.path.name}: {link}"
            if parts.fragment and target.suffix == ".html":
                assert unquote(parts.fragment) in parsed(target).anchors, f"{page.path.name}: {link}"
            followed += 1
    assert followed > 5000


def test_links_outside_have_the_form_of_links(pages):
    """Nobody follows them here: tests run without a network."""
    outside = {link for page in pages for link in page.links if urlsplit(link).scheme}
    assert len(outside) > 10
    for link in outside:
        parts = urlsplit(link)
        assert parts.scheme in ("https", "http") and re.fullmatch(r"[\w.-]+\.[a-z]+", parts.netloc), link
        assert not re.search(r"[\s<>\"`]|[.,)]$", link), link


def test_nothing_is_loaded_from_elsewhere(pages):
    for page in pages:
        assert [
            load for load in page.loads if urlsplit(load).scheme not in ("", "data") or load.startswith("//")
        ] == [], page.path


def test_search_finds_a_call(browser, address):
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(address + "index.html")
    page.keyboard.press("Control+k")
    page.keyboard.type("Fetch_and_op")
    page.keyboard.press("Enter")
    page.wait_for_selector("#search-results ul.search li a", timeout=20_000)
    page.wait_for_function("document.querySelector('.search-summary')?.textContent.match(/\\d/)")
    found = page.locator("#search-results ul.search li a").all_inner_texts()
    assert any("gormapy.MPI.Win.Fetch_and_op" in text for text in found), found
    page.screenshot(path=screenshot("search"))
    page.locator("#search-results a", has_text="gormapy.MPI.Win.Fetch_and_op").first.click()
    page.wait_for_selector("dt#gormapy\\.MPI\\.Win\\.Fetch_and_op")
    page.close()


def test_search_finds_a_word_of_a_lesson(browser, address):
    page = browser.new_page(viewport={"width": 390, "height": 900})
    page.goto(address + "search.html?q=passive+target")
    page.wait_for_selector("#search-results ul.search li a", timeout=20_000)
    page.wait_for_function("document.querySelector('.search-summary')?.textContent.match(/\\d/)")
    assert any("Locks: passive target" in text for text in page.locator("#search-results li a").all_inner_texts())
    page.close()


def screenshot(name):
    """Return the path of a screenshot."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    return SCREENSHOTS / f"{name}.png"


OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"

# The least contrast between a text and what is behind it, by WCAG, among what the ranks printed and the article's text.
CONTRAST = """() => {
  const channel = v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4
  const luminance = c => 0.2126 * channel(c[0]) + 0.7152 * channel(c[1]) + 0.0722 * channel(c[2])
  const parse = text => (text.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number)
  const over = (c, under) => { const a = c[3] ?? 1; return [0, 1, 2].map(i => c[i] * a + under[i] * (1 - a)) }
  const behind = element => {
    const layers = []
    for (let e = element; e; e = e.parentElement) layers.push(parse(getComputedStyle(e).backgroundColor))
    return layers.reverse().reduce((under, c) => c.length ? over(c, under) : under, [255, 255, 255])
  }
  let least = [99, '']
  for (const e of document.querySelectorAll('.bd-article p, .bd-article td, .bd-article dt, .gormapy-output pre, .gormapy-output span, .gormapy-label, .gormapy-note, .bd-article pre span')) {
    const text = [...e.childNodes].filter(n => n.nodeType == 3).map(n => n.textContent.trim()).join('')
    if (!text || !e.offsetParent) continue
    const under = behind(e), a = luminance(over(parse(getComputedStyle(e).color), under)), b = luminance(under)
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)
    if (contrast < least[0]) least = [contrast, text]
  }
  return least
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_pages_fit_and_can_be_read(browser, address, width, theme):
    """At the widths of a phone and of a desk, in both themes; the screenshots are for people."""
    context = browser.new_context(viewport={"width": WIDTHS[width], "height": 900}, color_scheme=theme)
    page = context.new_page()
    for name in SHOWN:
        page.goto(f"{address}{name}.html")
        assert page.evaluate("document.documentElement.dataset.theme") == theme
        assert page.evaluate(OVERFLOW) <= 0, f"{name} is wider than {WIDTHS[width]} pixels"
        contrast, text = page.evaluate(CONTRAST)
        assert contrast > 3, f"{name}: {text!r} has a contrast of {contrast:.1f} to what is behind it"
        page.screenshot(path=screenshot(f"{name.replace('/', '-')}-{width}-{theme}"))
    lesson = page.locator(".gormapy-output")
    page.goto(f"{address}notebooks/06-locks.html")
    for number, name in enumerate(("first", "error")):
        lesson.nth(number).scroll_into_view_if_needed()
        page.screenshot(path=screenshot(f"output-{name}-{width}-{theme}"))
    page.locator("div.cell_output img").first.scroll_into_view_if_needed()
    page.wait_for_timeout(200)
    page.screenshot(path=screenshot(f"output-picture-{width}-{theme}"))
    context.close()


def test_no_page_is_wider_than_a_phone(browser, address, pages, html):
    page = browser.new_page(viewport={"width": WIDTHS["phone"], "height": 900})
    wide = []
    for one in pages:
        name = one.path.relative_to(html).as_posix()
        page.goto(address + name, wait_until="domcontentloaded")
        if page.evaluate(OVERFLOW) > 0:
            wide.append(name)
    page.close()
    assert not wide
