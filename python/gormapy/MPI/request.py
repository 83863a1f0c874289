"""Requests: operations that were started and have to be completed."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, Literal

from gormapy._ext import core, fast

from . import awaiting, constants
from .exception import Exception, check, error
from .handle import Handle, adopt, named
from .hot import hot
from .msgbuffer import index
from .serialize import pickle
from .status import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from typing_extensions import Self

# Bits of Request._kind: completion leaves a persistent request as it is; one with a step completes in Python.
_PERSISTENT, _STEPPED = 2, 4


class Step:
    """The work of Python before an operation of the core starts, and after it is complete.

    The latter is done once, by the thread that completes the request: there a program's functions may be called.
    """

    __slots__ = ("_after", "_before", "_done")

    def __init__(self, after, before=None):
        self._after, self._before = after, before
        self._done = True

    def begin(self):
        """Do the work before the operation."""
        self._done = False
        if self._before is not None:
            self._before()

    def __call__(self, status=None):
        """Do the work after it."""
        if not self._done:
            self._done = True
            self._after()


class Request(Handle, fast.Request):
    """Operation that has been started and has to be completed."""

    _family = "Request"
    _step = None
    # The communicator whose error handler is called; set if any object has one that is not ERRORS_RETURN.
    _errors_of = None

    def __new__(cls, request: Request | None = None) -> Self:
        self = adopt(Request, super().__new__(cls), request)
        if request is not None:
            self._kind, self._buf = request._kind, request._buf
            if request._arriving is not None:
                self._arriving = request._arriving
            if request._step is not None:
                self._step = request._step
        return self

    @classmethod
    def _started(cls, started, step=None):
        """Make the request for an operation that a nonblocking call of the core has started."""
        self = cls.__new__(cls)
        fast.adopt(self, started)
        if step is not None:
            self._step = step
            self._kind |= _STEPPED
        return self

    @classmethod
    def _from_handle(cls, handle):
        self = cls.__new__(cls)
        self._h = handle
        return self

    # Completion
    # ----------

    def _complete(self, handle, status):
        """Record that the operation of a handle has succeeded, and do the work after it."""
        step = self._step
        if step is None:
            fast.retire(self, handle, 0)
            return
        memory = self._buf  # where the step finds the received data
        fast.retire(self, handle, 0)
        step(status)
        del memory

    def _take(self, status):
        """Return the object that arrived, None if the operation brings none."""
        memory = self._arriving
        # another thread may have completed the request before: the object is for who has its status
        if memory is None or not status._nbytes:
            return None
        self._arriving = None
        if isinstance(memory, fast.Room):
            return pickle.loads(memory.holds(status._nbytes))
        return pickle.loads(memoryview(memory)[: status._nbytes])

    @hot
    def Wait(self, status: Status | None = None) -> Literal[True]:
        """Wait for the operation to complete."""
        handle = self._h
        try:
            fast.wait(handle, status)
        except Exception as failure:
            fast.retire(self, handle, failure.Get_error_code())
            raise
        self._complete(handle, status)
        return True

    @hot
    def Test(self, status: Status | None = None) -> bool:
        """Report whether the operation is complete, and complete the request if so."""
        handle = self._h
        try:
            done = fast.test(handle, status)
        except Exception as failure:
            fast.retire(self, handle, failure.Get_error_code())
            raise
        if done:
            self._complete(handle, status)
        return done

    def Get_status(self, status: Status | None = None) -> bool:
        """Report whether the operation is complete, and keep the request."""
        if not self._h:
            if status is not None:
                status._set()
            return True
        done = fast.request_status(self._h, status)
        if done and self._step is not None:
            self._step(status)  # the program may look at its buffers now
        return done

    @classmethod
    @hot
    def Waitany(cls, requests: Sequence[Request], status: Status | None = None) -> int:
        """Wait for one of several operations to complete."""
        listed = _listed(requests)
        codes = [None] * len(listed)
        try:
            index = fast.waitany(_handles(listed), status, codes)
        finally:
            _retire_ended(listed, codes, [status] * len(listed))
        return _chosen(index, status)

    @classmethod
    @hot
    def Testany(cls, requests: Sequence[Request], status: Status | None = None) -> tuple[int, bool]:
        """Report whether one of several operations is complete, and complete its request if so."""
        listed = _listed(requests)
        codes = [None] * len(listed)
        try:
            index, flag = fast.testany(_handles(listed), status, codes)
        finally:
            _retire_ended(listed, codes, [status] * len(listed))
        return (_chosen(index, status) if flag else constants.UNDEFINED), bool(flag)

    @classmethod
    def Get_status_any(cls, requests: Sequence[Request], status: Status | None = None) -> tuple[int, bool]:
        """Report whether one of several operations is complete, and keep the requests."""
        active = [(i, r) for i, (r, handle) in enumerate(_listed(requests)) if handle]
        for i, request in active:
            if request.Get_status(status):
                return i, True
        if not active and status is not None:
            status._set()
        return constants.UNDEFINED, not active

    @classmethod
    @hot
    def Waitall(cls, requests: Sequence[Request], statuses: list[Status] | None = None) -> Literal[True]:
        """Wait for all of several operations to complete."""
        _all(requests, statuses, fast.waitall)
        return True

    @classmethod
    @hot
    def Testall(cls, requests: Sequence[Request], statuses: list[Status] | None = None) -> bool:
        """Report whether all of several operations are complete, and complete the requests if so."""
        return _all(requests, statuses, fast.testall)

    @classmethod
    def Get_status_all(cls, requests: Sequence[Request], statuses: list[Status] | None = None) -> bool:
        """Report whether all of several operations are complete, and keep the requests."""
        listed = _listed(requests)
        filled = [Status() for _ in listed]
        for (request, _), status in zip(listed, filled):
            if not request.Get_status(status):
                return False
        _return_statuses(filled, statuses, len(filled))
        return True

    @classmethod
    @hot
    def Waitsome(cls, requests: Sequence[Request], statuses: list[Status] | None = None) -> list[int] | None:
        """Wait for at least one of several operations to complete."""
        return _some(requests, statuses, fast.waitsome)

    @classmethod
    @hot
    def Testsome(cls, requests: Sequence[Request], statuses: list[Status] | None = None) -> list[int] | None:
        """Complete the requests of those of several operations that are complete."""
        return _some(requests, statuses, fast.testsome)

    @classmethod
    def Get_status_some(cls, requests: Sequence[Request], statuses: list[Status] | None = None) -> list[int] | None:
        """Return which of several operations are complete, and keep the requests."""
        active = [(i, r) for i, (r, handle) in enumerate(_listed(requests)) if handle]
        if not active:
            return None
        filled, indices = [], []
        for i, request in active:
            status = Status()
            if request.Get_status(status):
                indices.append(i)
                filled.append(status)
        _return_statuses(filled, statuses, len(filled))
        return indices

    def Cancel(self) -> None:
        """Ask for the operation to be cancelled."""
        if self._h:
            fast.cancel(self._h)
        else:
            raise Exception(constants.ERR_REQUEST)

    def Free(self) -> None:
        """Free the request."""
        if not self._h:
            raise Exception(constants.ERR_REQUEST)
        fast.free(self)

    def free(self) -> None:
        """Call Free, if the request is not null."""
        if self:
            self.Free()

    def __await__(self) -> Generator[Any, None, Any]:
        """Wait in a task of asyncio for the operation to complete."""
        while not self.Get_status():
            yield from awaiting.ended(self._h)
        return self.wait()

    # Completion of operations on Python objects
    # ------------------------------------------

    @hot
    def wait(self, status: Status | None = None) -> Any:
        """Wait for the operation to complete, and return its object."""
        status = Status() if status is None else status
        self.Wait(status)
        return self._take(status)

    def test(self, status: Status | None = None) -> tuple[bool, Any]:
        """Report whether the operation is complete; return its object if so."""
        status = Status() if status is None else status
        if not self.Test(status):
            return False, None
        return True, self._take(status)

    def get_status(self, status: Status | None = None) -> bool:
        """Report whether the operation is complete, and keep the request."""
        return self.Get_status(status)

    @classmethod
    def waitany(cls, requests: Sequence[Request], status: Status | None = None) -> tuple[int, Any]:
        """Wait for one of several operations to complete, and return its object."""
        status = Status() if status is None else status
        requests = _copied(requests)
        index = cls.Waitany(requests, status)
        return index, (requests[index]._take(status) if index >= 0 else None)

    @classmethod
    def testany(cls, requests: Sequence[Request], status: Status | None = None) -> tuple[int, bool, Any]:
        """Report whether one of several operations is complete; return its object if so."""
        status = Status() if status is None else status
        requests = _copied(requests)
        index, flag = cls.Testany(requests, status)
        return index, flag, (requests[index]._take(status) if index >= 0 else None)

    @classmethod
    def get_status_any(cls, requests: Sequence[Request], status: Status | None = None) -> tuple[int, bool]:
        """Report whether one of several operations is complete, and keep the requests."""
        return cls.Get_status_any(requests, status)

    @classmethod
    @hot
    def waitall(cls, requests: Sequence[Request], statuses: list[Status] | None = None) -> list[Any]:
        """Wait for all of several operations to complete, and return their objects."""
        requests = _copied(requests)
        _check_statuses(statuses, len(requests))
        filled = [Status() for _ in requests]
        cls.Waitall(requests, filled)
        _return_statuses(filled, statuses, len(filled))
        return [r._take(s) for r, s in zip(requests, filled)]

    @classmethod
    def testall(
        cls, requests: Sequence[Request], statuses: list[Status] | None = None
    ) -> tuple[bool, list[Any] | None]:
        """Report whether all of several operations are complete; return their objects if so."""
        requests = _copied(requests)
        _check_statuses(statuses, len(requests))
        filled = [Status() for _ in requests]
        if not cls.Testall(requests, filled):
            return False, None
        _return_statuses(filled, statuses, len(filled))
        return True, [r._take(s) for r, s in zip(requests, filled)]

    @classmethod
    def get_status_all(cls, requests: Sequence[Request], statuses: list[Status] | None = None) -> bool:
        """Report whether all of several operations are complete, and keep the requests."""
        return cls.Get_status_all(requests, statuses)

    @classmethod
    def waitsome(
        cls, requests: Sequence[Request], statuses: list[Status] | None = None
    ) -> tuple[list[int] | None, list[Any] | None]:
        """Wait for at least one of several operations to complete, and return the objects."""
        return _some_objects(requests, statuses, cls.Waitsome)

    @classmethod
    def testsome(
        cls, requests: Sequence[Request], statuses: list[Status] | None = None
    ) -> tuple[list[int] | None, list[Any] | None]:
        """Return the objects of those of several operations that are complete."""
        return _some_objects(requests, statuses, cls.Testsome)

    @classmethod
    def get_status_some(cls, requests: Sequence[Request], statuses: list[Status] | None = None) -> list[int] | None:
        """Return which of several operations are complete, and keep the requests."""
        return cls.Get_status_some(requests, statuses)

    def cancel(self) -> None:
        """Ask for the operation to be cancelled."""
        self.Cancel()


class Prequest(Request):
    """Persistent request: an operation that can be started again and again."""

    def __new__(cls, request: Request | None = None) -> Self:
        return super().__new__(cls, _of_kind(Prequest, request))

    @classmethod
    def _prepared(cls, handle, holder, step=None):
        """Make the request for the handle that an initialising call of the core returned."""
        self = cls.__new__(cls)
        self._h = handle
        self._buf = holder
        self._kind = _PERSISTENT
        if step is not None:
            self._step = step
            self._kind |= _STEPPED
        return self

    @hot
    def Start(self) -> None:
        """Begin the operation of a persistent request once more."""
        if self._step is not None:
            self._step.begin()
        fast.start(self._h)

    def Pready(self, partition: int) -> None:
        """Send one partition of a partitioned send."""
        partition = index(partition, "partition")
        check(core.Pready(self._active(), partition, partition))

    def Pready_range(self, partition_low: int, partition_high: int) -> None:
        """Send the partitions from `partition_low` to `partition_high`, both included."""
        low, high = index(partition_low, "partition_low"), index(partition_high, "partition_high")
        check(core.Pready(self._active(), low, high))

    def Pready_list(self, partitions: Sequence[int]) -> None:
        """Send the partitions with these numbers."""
        numbers = array("q", (index(partition, "partition") for partition in partitions))
        address, n = numbers.buffer_info()
        check(core.PreadyList(self._active(), address, n))

    def Parrived(self, partition: int) -> bool:
        """Report whether a partition of a partitioned receive has arrived."""
        partition = index(partition, "partition")
        return not self._h or bool(check(core.Parrived(self._h, partition)))

    def _active(self):
        if not self._h:
            raise error(constants.ERR_REQUEST, "the request is REQUEST_NULL")
        return self._h

    @classmethod
    @hot
    def Startall(cls, requests: Sequence[Prequest]) -> None:
        """Begin the operations of several persistent requests once more."""
        for request in _copied(requests):
            request.Start()


class Grequest(Request):
    """Generalized request: an operation that the program itself completes."""

    def __new__(cls, request: Request | None = None) -> Self:
        return super().__new__(cls, _of_kind(Grequest, request))

    @classmethod
    def Start(
        cls,
        query_fn: Callable[..., None] | None = None,
        free_fn: Callable[..., None] | None = None,
        cancel_fn: Callable[..., None] | None = None,
        args: Any = None,
        kwargs: Any = None,
    ) -> Grequest:
        """Create a request that the program completes."""
        for function in (query_fn, free_fn, cancel_fn):
            if function is not None and not callable(function):
                raise TypeError(f"Grequest.Start: expecting functions, got {type(function).__name__}")
        self = cls.__new__(cls)
        self._step = _Callbacks(query_fn, free_fn, cancel_fn, args or (), kwargs or {})
        self._kind |= _STEPPED
        self._h = check(core.GrequestStart())
        return self

    def Complete(self) -> None:
        """Complete the request."""
        if not self._h:
            raise Exception(constants.ERR_REQUEST)
        check(core.GrequestComplete(self._h))
        if self._step is not None:
            self._step.completed = True

    def complete(self, obj: Any = None) -> None:
        """Complete the request, with the object that `wait` returns."""
        if self._step is not None:
            self._step.result = obj
        self.Complete()

    def Cancel(self) -> None:
        """Call the function that cancels the operation."""
        if not self._h:
            raise Exception(constants.ERR_REQUEST)
        if self._step is not None:
            self._step.cancel()

    def _complete(self, handle, status):
        callbacks = self._step
        fast.retire(self, handle, 0)
        if callbacks is not None:
            try:
                callbacks(status)
            finally:
                callbacks.free()

    def _take(self, status):
        if self._step is None:
            return None
        result, self._step.result = self._step.result, None
        return result


class _Callbacks:
    """The functions of a generalized request; called as a Step, it sets the status."""

    def __init__(self, query, free, cancel, args, kwargs):
        self._query, self._free, self._cancel = query, free, cancel
        self._args, self._kwargs = args, kwargs
        self.completed = False
        self.result = None

    def __call__(self, status):
        status = Status() if status is None else status
        status._set(constants.ANY_SOURCE)
        self._call(self._query, status)

    def free(self):
        self._call(self._free)

    def cancel(self):
        self._call(self._cancel, self.completed)

    def _call(self, function, *first):
        """Call a function of the program; print its exception, for which MPI has only an error code."""
        if function is None:
            return
        try:
            function(*first, *self._args, **self._kwargs)
        except BaseException as error:
            import traceback

            traceback.print_exc()
            raise Exception(int(error) if isinstance(error, Exception) else constants.ERR_OTHER) from None


def _of_kind(cls, request):
    if request and not isinstance(request, cls):
        raise TypeError(f"expecting {cls.__name__}, got {type(request).__name__}")
    return request


# Lists of requests
# -----------------


def _copied(requests):
    """Return the requests of a list as they are now: another thread or a signal handler may change it."""
    try:
        copy = list(requests)
    except TypeError:
        copy = None
    if copy is None or not all(isinstance(request, Request) for request in copy):
        from .explain import no_requests

        raise no_requests(requests if copy is None else copy) from None
    return copy


def _listed(requests):
    """Return the requests of a list and their handles, as they are now."""
    return [(request, request._h) for request in _copied(requests)]


def _handles(listed):
    return [handle for _, handle in listed]


def _chosen(index, status):
    if index >= 0:
        return index
    if status is not None:
        status._set()
    return constants.UNDEFINED


def _retire_ended(listed, codes, filled):
    """Record which requests have ended, successfully or not: all of them even if the function of one fails.

    The code of a request is None as long as it has not ended: then it is unchanged, and its memory is kept.
    """
    failure = None
    for (request, handle), code, status in zip(listed, codes, filled):
        if code is None:
            continue
        if code:
            fast.retire(request, handle, code)
            continue
        try:
            request._complete(handle, status)  # which may set the status
        except BaseException as error:
            failure = failure or error
    if failure is not None:
        raise failure


def _all(requests, statuses, call):
    """Complete the requests by waitall or testall of the core; return its result."""
    listed = _listed(requests)
    _check_statuses(statuses, len(listed))
    filled = [Status() for _ in listed]
    codes = [None] * len(listed)
    try:
        return call(_handles(listed), filled, codes)
    finally:
        try:
            _retire_ended(listed, codes, filled)
        finally:
            if any(codes):  # the statuses say which of them failed
                for status, code in zip(filled, codes):
                    if code is None:
                        status._error = constants.ERR_PENDING
            if any(codes) or None not in codes:
                _return_statuses(filled, statuses, len(listed))


def _check_statuses(statuses, count):
    """Refuse what is no list of statuses, before any request is completed."""
    if statuses is None:
        return
    if not (hasattr(type(statuses), "__len__") and hasattr(type(statuses), "__getitem__")):
        raise TypeError(f"statuses: expecting a list of Status objects or None, got {type(statuses).__name__}")
    for i, status in zip(range(count), statuses):
        if not isinstance(status, Status):
            raise TypeError(f"statuses: expecting a list of Status objects, got {type(status).__name__} at index {i}")


def _return_statuses(filled, statuses, count):
    """Copy statuses to the program's list, which grows if it is too short."""
    if statuses is None or filled is None:
        return
    if isinstance(statuses, list):
        statuses.extend(Status() for _ in range(len(statuses), count))
    for i in range(min(count, len(statuses))):
        if statuses[i] is not filled[i]:
            statuses[i].__setstate__(filled[i].__getstate__())


def _some(requests, statuses, call):
    """Complete those requests that are done, by waitsome or testsome of the core."""
    listed = _listed(requests)
    _check_statuses(statuses, len(listed))
    filled = [Status() for _ in listed]
    codes = [None] * len(listed)
    try:
        indices = call(_handles(listed), filled, codes)
    finally:
        try:
            _retire_ended(listed, codes, filled)
        finally:
            ended = [status for status, code in zip(filled, codes) if code is not None]
            _return_statuses(ended, statuses, len(ended))
    return indices


def _some_objects(requests, statuses, call):
    requests = _copied(requests)
    _check_statuses(statuses, len(requests))
    filled = [Status() for _ in requests]
    indices = call(requests, filled)
    if indices is None:
        return None, None
    _return_statuses(filled, statuses, len(indices))
    return indices, [requests[i]._take(filled[k]) for k, i in enumerate(indices)]


def finish(started, status=None):
    """Wait for an operation that the core has started; Ctrl-C abandons the operation."""
    fast.finish(started, status)


REQUEST_NULL = Request()
named("Request", 0, "REQUEST_NULL")
