"""A Chromium without a window, for tests of what people see."""

import contextlib
import os
import shutil

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find():
    """Return the path of a Chromium, "" if there is none."""
    return next(filter(None, map(shutil.which, NAMES)), "")


@contextlib.contextmanager
def launched(api):
    """Start it by Playwright's synchronous API, and end it."""
    options = ["--disable-dev-shm-usage"]  # where containers have little of it
    if os.getuid() == 0:
        options.append("--no-sandbox")  # Chromium's sandbox is not for root
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find(), args=options, timeout=60_000)
        yield browser
        browser.close()
