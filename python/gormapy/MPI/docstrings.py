"""Docstrings begin with the signature, as mpi4py's, with types, which inspect can't tell of calls in C.

They are made in advance, by `make stubs`: an import has no time to put them together.
"""

import sys

from .texts import TEXTS


def install(namespace):
    """Give the classes and functions of a namespace, and the members of the classes, their docstrings."""
    if install.__doc__ is None:  # python -OO
        return
    for owner, texts in TEXTS.items():
        if owner == "class":
            for name, text in texts.items():
                namespace[name].__doc__ = _Docstring(text)
            continue
        defined = vars(namespace[owner]) if owner else namespace
        for name, text in texts.items():
            member = defined[name] if name in defined else _inherited(namespace[owner], name)
            member = getattr(member, "__func__", member)  # of a class method
            if member.__doc__ != text:  # else the module is being reloaded
                member.__doc__ = text


def _inherited(cls, name):
    for base in cls.__mro__:
        if name in vars(base):
            return vars(base)[name]
    raise AttributeError(f"{cls.__name__} has no {name}")


class _Docstring:
    """The docstring of a class, and for a constant of the class its own."""

    __slots__ = ("_text",)

    def __init__(self, text):
        self._text = text

    def __get__(self, obj, cls):
        if obj is None:
            return self._text
        from .constanttexts import CONSTANTS  # most programs do not look

        module = sys.modules[__package__]  # which a class must not keep: what programs put into it goes at the end
        vars(module).pop("constanttexts", None)  # the import has made it a name of the package
        for name, text in CONSTANTS.items():
            if getattr(module, name, None) is obj:
                return text
        return self._text
