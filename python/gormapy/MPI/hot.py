"""The calls that the extension handles itself, and their Python methods.

For each of them the extension's base type has a method that parses the usual arguments in C. It passes anything
unusual to its fallback, the Python method of the same name: that is marked `@hot`, and install moves it from its class
to the extension's table.
"""

import sys

from gormapy._ext import fast


def hot(method):
    """Mark a method as the fallback of a hot call: what runs first is the extension's method of the same name."""
    method.is_hot = True
    return method


def install(classes):
    """Replace the marked methods of these classes, and the marked functions among them, with the extension's."""
    for call in fast.HOT:
        owner, name = call.split(".")
        of_class = fast.OF_CLASS.get(owner, {}).get(name)
        if of_class is None and not hasattr(getattr(fast, owner, fast.Request), name):
            continue
        for cls in classes[owner].__mro__:
            member = vars(cls).get(name)
            method = getattr(member, "__func__", member)  # of a class method
            if getattr(method, "is_hot", False):
                fast.set_fallback(call, method, method.__doc__ or "")
                if of_class is None:
                    delattr(cls, name)
                else:
                    setattr(cls, name, of_class)
                break
    for name, function in list(classes.items()):
        if getattr(function, "is_hot", False):
            fast.document(f"MPI.{name}", function.__doc__ or "")
            classes[name] = getattr(fast, name)
            classes[name].__module__ = function.__module__
            setattr(sys.modules[function.__module__], name, classes[name])  # where pickle looks for it
