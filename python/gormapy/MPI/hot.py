"""The calls that the extension handles itself, and their Python methods.

For each of them the extension's base type has a method that parses the usual arguments in C. It passes anything
unusual to the Python method of the same name, which is in the extension's table instead of in the class.
"""

import inspect

from gormapy._ext import fast


def install(classes):
    """Replace Python methods of these classes (by name) with the extension's."""
    for call in fast.HOT:
        owner, name = call.split(".")
        if not hasattr(getattr(fast, owner, fast.Request), name):
            continue
        for cls in classes[owner].__mro__:
            member = vars(cls).get(name)
            if member is not None and cls.__module__.startswith("gormapy.MPI"):
                fast.set_slow(call, getattr(member, "__func__", member), inspect.cleandoc(member.__doc__))
                delattr(cls, name)
                break
