"""Calls that exist by name and signature and raise NotImplementedError."""

from types import FunctionType

from gormapy._version import __version__

_SERIES = __version__.rpartition(".")[0]


def _refuse(declared, call):
    """Make a function with the signature of `declared` that refuses `call`."""

    def refuse(*args, **kwargs):
        declared(*args, **kwargs)  # wrong arguments are a TypeError first
        raise NotImplementedError(f"{call} is not implemented in gormapy {_SERIES}")

    refuse.__name__ = declared.__name__
    refuse.__qualname__ = call.removeprefix("MPI.")
    refuse.__doc__ = declared.__doc__
    refuse.__wrapped__ = declared  # inspect.signature and help() show this one's arguments
    return refuse


def unimplemented_calls(owner):
    """Mark every method of a mix-in class as a call of `owner` that is not implemented."""

    def decorate(mixin):
        for name, member in list(vars(mixin).items()):
            call = f"MPI.{owner}.{name}"
            if isinstance(member, classmethod):
                setattr(mixin, name, classmethod(_refuse(member.__func__, call)))
            elif isinstance(member, property):
                setattr(mixin, name, property(_refuse(member.fget, call), doc=member.__doc__))
            elif isinstance(member, FunctionType):
                setattr(mixin, name, _refuse(member, call))
        return mixin

    return decorate
