"""What an executor asks of its workers before its first task."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from . import mainmodule, protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class Setup:
    """The main module, paths, variables and initializer of an executor.

    Parameters
    ----------
    initializer, initargs
        What to call in each worker.
    options : dict
        The keyword arguments of an executor that are about its workers.
    """

    def __init__(self, initializer: Callable[..., object] | None, initargs: Iterable[Any], options: Any) -> None:
        self.initializer, self.initargs = initializer, tuple(initargs)
        self.globals = dict(options.get("globals") or ())
        self.path = [os.fspath(p) for p in options.get("path") or ()]
        wdir = options.get("wdir")
        self.wdir = None if wdir is None else os.fspath(wdir)
        self.env = {name: os.fspath(value) for name, value in dict(options.get("env") or ()).items()}
        main = options.get("main")
        self.main = True if main is None else bool(main)
        self.source: mainmodule.Source | None = None  # of the main module, for workers that lack it

    def is_empty(self) -> bool:
        """Report whether workers that have the main module need not hear of it."""
        return not (self.initializer or self.globals or self.path or self.wdir or self.env)

    def pack(self) -> bytes:
        """Serialize it. The initializer is apart: it may be of the main module, which a worker has to make first."""
        mine = {name: getattr(self, name) for name in ("globals", "path", "wdir", "env", "main", "source")}
        given = protocol.dumps((self.initializer, self.initargs), False)[0]
        return protocol.dumps((mine, given), False)[0]

    @classmethod
    def unpacked(cls, data: Any) -> tuple[Setup, Any]:
        """Make it from what `pack` returns; return the initializer as it is serialized."""
        self = cls(None, (), {})
        mine, given = protocol.loads(data, ())
        for name, value in mine.items():
            setattr(self, name, value)
        return self, given

    def apply(self, imported: bool, given: Any = None) -> None:
        """Do all of it in this process, whose main module is there if `imported`."""
        for path in self.path:
            if path not in sys.path:
                sys.path.append(path)
        if self.wdir is not None:
            os.chdir(self.wdir)
        os.environ.update(self.env)
        if self.main and not imported and self.source is not None:
            mainmodule.provide(self.source, self.globals)
        elif self.globals:
            vars(sys.modules["__main__"]).update(self.globals)
        if given is not None:
            self.initializer, self.initargs = protocol.loads(given, ())
        if self.initializer is not None:
            self.initializer(*self.initargs)

    def failed(self, error: BaseException) -> str:
        """Say that it has failed."""
        what = "the initializer" if self.initializer is not None else "the start of a worker"
        return f"{what} has failed: {type(error).__name__}: {error}"
