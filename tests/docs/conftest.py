"""The built site, and a browser that looks at it."""

import functools
import http.server
import threading
from pathlib import Path

import pytest
from support import chromium

ROOT = Path(__file__).resolve().parents[2]
HTML = ROOT / ".cache" / "docs" / "html"


@pytest.fixture(scope="session")
def html():
    """The folder of the site."""
    assert (HTML / "index.html").exists(), "there is no site: run 'make docs'"
    return HTML


@pytest.fixture(scope="session")
def browser():
    """A Chromium without a window."""
    api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: run 'make test-docs'")
    if not chromium.find():
        pytest.skip("there is no Chromium on PATH: install the distribution's package chromium")
    with chromium.launched(api) as browser:
        yield browser


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files and says nothing."""

    def log_message(self, *args):
        """Say nothing."""


@pytest.fixture(scope="session")
def address(html):
    """The site as a server on the loopback interface gives it."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=html))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()
    thread.join(10)
    assert not thread.is_alive()
