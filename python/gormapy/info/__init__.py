"""The environment that gormapy runs in: all facts that a bug report needs.

``python -m gormapy info`` prints it, also under a launcher. In a program or a notebook,
``print(gormapy.info.text())`` shows the same of the process that it is called in.
"""

__all__ = ["report", "text"]


def report():
    """Return what is known about this process and its machine, as a dictionary that JSON can take.

    It does not communicate, and works in any state: where MPI cannot be initialized, "error" says why.
    """
    from . import settings, system, world

    return {**system.facts(), **world.facts(), "settings": settings.facts()}


def text():
    """Return the report as text for people."""
    from .layout import show

    return show(report())
