"""A browser and a JupyterLab server for the tests of this folder."""

import lab
import pytest
from support import chromium


@pytest.fixture(scope="session")
def browser():
    """A Chromium without a window."""
    api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: run 'make test-browser'")
    if not chromium.find():
        pytest.skip("there is no Chromium on PATH: install the distribution's package chromium")
    with chromium.launched(api) as browser:
        yield browser


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """A JupyterLab server for all tests."""
    pytest.importorskip("jupyterlab", reason="JupyterLab is not installed: run 'make test-browser'")
    with lab.Server(tmp_path_factory.mktemp("lab")) as server:
        yield server


@pytest.fixture
def notebook(browser, server, request):
    """A new notebook in a window of its own; ``notebook(name)`` opens another."""
    context = browser.new_context(viewport={"width": 1200, "height": 860})

    def make(name=None):
        return lab.Notebook(server, context, f"{name or request.node.name}.ipynb")

    try:
        yield make
    finally:
        for number, page in enumerate(context.pages):  # what the test saw last
            page.screenshot(path=lab.SCREENSHOTS / f"end-of-{request.node.name}-{number}.png", timeout=20_000)
        context.close()
        server.shut_down()
        server.no_ranks()
