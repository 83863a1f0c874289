"""Processes that stop before each of their accesses to shared memory, without threads.

A process is deterministic: what it does next follows from what its accesses have returned so far, its past. So it need
not be suspended: to learn what it does after some past it is run anew from its beginning, is given those values, and
is stopped, by an exception, at the first access that has none yet. That is done once for each past.

Two pasts are one when the future can't tell them apart. That is looked for where a process waits and where it says
`forget`: pasts are one that lead to the same place in all functions that run, with the same content of all
their variables. What an expression has put aside in no variable is not seen, so a wait has to be a statement or an
assignment, and what is made step by step (a list, say) has to be in a variable.
"""

import sys
import types

import numpy as np

LONGEST = 400  # accesses of a process, before that counts as a livelock

FORGET = ("forget",)
FORGETS = ("wait", "nap", "forget")  # accesses at which pasts become one


class Livelock(Exception):
    """A process makes more accesses than can be right."""


class Stop(BaseException):
    """Ends a run of a process at the access whose result is not known."""


class Ended:
    """What a process has that has returned a value, or raised an error."""

    def __init__(self, value, error):
        self.value, self.error = value, error


class Process:
    """A process, as the doubles see it: `step` makes an access, and returns what came of it."""

    def __init__(self, rank, function):
        self.rank = rank
        self._function = function
        self._nodes = [(None, None, self._run([]))]  # node: the one before, what was returned there, access or Ended
        self._after = {}
        self._known = {}  # what `snapshot` has seen -> node

    def step(self, *access):
        """Make an access."""
        if self._at < len(self._past):
            self._at += 1
            return self._past[self._at - 1]
        if self._next is None:  # else a `finally` makes accesses while Stop passes
            self._next = access
            if access[0] in FORGETS:
                self._snapshot = snapshot(sys._getframe(1), self)
        raise Stop

    def forget(self):
        """Take no step; pasts that lead here are one if all variables of the functions that run are the same."""
        self.step("forget")

    def _run(self, past):
        self._past, self._at, self._next, self._snapshot = past, 0, None, None
        try:
            return Ended(self._function(self), None)
        except Stop:
            return self._next
        except Exception as error:
            return Ended(None, error)

    def start(self):
        """Return the node at which a process begins."""
        return self.after(0, None) if self.access(0) == FORGET else 0

    def access(self, node):
        """Return the access at a node, or how the process has ended."""
        return self._nodes[node][2]

    def state(self):
        """Return nothing: what the explorer keeps is not the process's."""

    def returned(self, node):
        """Return what the last access before a node has returned."""
        return self._nodes[node][1]

    def after(self, node, result):
        """Return the node that a process is at when the access of another one has returned something."""
        found = self._after.get((node, result))
        if found is None:
            past, at = [result], node
            while at:
                at, returned, _ = self._nodes[at]
                past.append(returned)
            if len(past) > LONGEST:
                raise Livelock(f"livelock: rank {self.rank} makes more than {LONGEST} accesses")
            access = self._run(past[::-1])
            found = self._known.get((access, self._snapshot)) if self._snapshot else None
            if found is None:
                found = len(self._nodes)
                self._nodes.append((node, result, access))
                if self._snapshot:
                    self._known[access, self._snapshot] = found
            if access == FORGET:
                found = self.after(found, None)
            self._after[node, result] = found
        return found


def snapshot(frame, process):
    """Return all that the future of a process depends on, but for what expressions have put aside."""
    frames, seen = [], {}
    while frame.f_locals.get("self") is not process or frame.f_code.co_name != "_run":
        variables = [(name, frozen(value, seen)) for name, value in frame.f_locals.items()]
        frames.append((id(frame.f_code), frame.f_lasti, tuple(variables)))
        frame = frame.f_back
    return tuple(frames)


def frozen(value, seen):
    """Return the content of a variable as something that can be compared; what is not known is equal to nothing."""
    if value is None or isinstance(value, (int, float, str, bytes, range, np.dtype, type, types.ModuleType)):
        return value
    if isinstance(value, (tuple, list)):
        return type(value), tuple([frozen(v, seen) for v in value])
    if isinstance(value, (memoryview, np.ndarray)):
        return value.tobytes()
    if isinstance(value, dict):
        return tuple([(k, frozen(v, seen)) for k, v in value.items()])
    if isinstance(value, BaseException):
        return repr(value)
    if id(value) in seen:
        return seen[id(value)]
    seen[id(value)] = f"object {len(seen)}"
    if isinstance(value, types.FunctionType):
        return id(value.__code__), frozen([cell.cell_contents for cell in value.__closure__ or ()], seen)
    if hasattr(type(value), "state"):
        return type(value), frozen(value.state(), seen)
    return (type(value), frozen(vars(value), seen)) if hasattr(value, "__dict__") else object()
