"""Docstrings that begin with the signature, as those of mpi4py: with types, which inspect can't tell of calls in C."""

from .signatures import SIGNATURES


def sign(namespace):
    """Let the docstrings of these classes and functions (by name) begin with their signatures."""
    for owner, signatures in SIGNATURES.items():
        cls = namespace[owner] if owner else None
        for name, signature in signatures.items():
            member = namespace[name] if cls is None else _definition(cls, name)
            member = getattr(member, "__func__", member)  # of a class method
            doc = member.__doc__  # None under python -OO
            if doc and not doc.startswith(f"{signature}\n"):  # else the module is being reloaded
                member.__doc__ = _signed(signature, doc)


def _definition(cls, name):
    for base in cls.__mro__:
        if name in vars(base):
            return vars(base)[name]
    raise AttributeError(f"{cls.__name__} has no {name}")


def _signed(signature, doc):
    rest = doc.partition("\n")[2].lstrip("\n")
    indent = " " * (len(rest) - len(rest.lstrip(" ")))
    return f"{signature}\n\n{indent}{doc}"
