"""Pictures need matplotlib, which `pip install 'gormapy[plot]'` brings."""

from pathlib import Path


class NoMatplotlib(RuntimeError):
    """matplotlib is not installed."""


def examine(folder):
    """Make the folder for pictures, and see that they can be drawn, before anything is measured."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise NoMatplotlib(
            f"--plot needs matplotlib ({error}): pip install 'gormapy[plot]', or pip install matplotlib"
        ) from None
    Path(folder).mkdir(parents=True, exist_ok=True)
