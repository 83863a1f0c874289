"""What the checker is told of one-sided operations."""

from . import accesses, kinds, requests
from .elements import is_small, number_of, number_of_op, places, value_at
from .known import windows
from .sites import here
from .wrapping import event, misuse, numbers, replace, wrapped

_SWAP, _REPLACE = 3, 1  # numbers of operations of accumulates (race.go)


def _operation(call, kind, parse, requested=False):
    """Make the replacement of a method that starts an operation; `parse` returns what its arguments say."""

    def make(method):
        def told(self, *args, **kwargs):
            site = here(call)
            target = -1
            number = 0
            try:
                parsed = parse(*args, **kwargs)
                known = windows.get(self._h)
                if parsed is not None and known is not None:
                    rank, origin, spec, result, compare, op, holder = parsed
                    if type(rank) is int and 0 <= rank < len(known.ranks):
                        target, one = known.ranks[rank], next(numbers)
                        _tell(self, known, site, kind, one, target, origin, spec, result, compare, op, requested)
                        number = one
            except Exception:
                pass  # the method has a better error
            try:
                made = method(self, *args, **kwargs)
            except BaseException as error:
                if number:
                    event(kinds.OP_FAILED, site, None, number)
                    known.forget(number)
                misuse(error, call, site, self._h, target)
                raise
            if number:
                known.keep(number, target, holder, origin, result, compare)
                if not isinstance(args[0] if args else kwargs.get("origin"), bytes):  # nobody can change these
                    accesses.look(site, *places(origin, result, compare))
                if requested:
                    requests.started(made, number, known)
            return made

        return told

    return make


def _tell(win, known, site, kind, number, target, origin, spec, result, compare, op, requested):
    address, count, datatype = origin
    disp, target_count, target_type = spec
    origin_type, there = number_of(datatype), number_of(target_type)
    result_address, result_count, result_type = 0, 0, 0
    if result is not None:
        result_address, result_count, result_type = result[0], result[1], number_of(result[2])
    value = valued = compared = expected = 0
    if compare is not None:
        compared = compare[0]
        expected, _ = value_at(compared, datatype)
    op_number = _SWAP if kind == kinds.COMPARE_AND_SWAP else _REPLACE if op is None else number_of_op(op)
    if kind >= kinds.ACCUMULATE and count == 1:
        value, valued = value_at(address, datatype)
    follows = kind >= kinds.GET_ACCUMULATE and target_count == 1 and is_small(target_type)
    event(
        kinds.OP, site, None, win._h, kind, number, target, disp, there, target_count, address, origin_type, count,
        result_address, result_type, result_count, compared, op_number, value, valued, requested + 2 * follows,
    )  # fmt: skip
    if follows:
        swap = expected if kind == kinds.COMPARE_AND_SWAP else None
        known.awaited.append((number, target, result_address, result[2], swap))


def parsers():
    """Return what reads arguments: of Put, Get and Accumulate; Get_accumulate; Fetch_and_op; Compare_and_swap."""
    from gormapy import MPI
    from gormapy.MPI.msgbuffer import message, parse_access, single

    def access(readonly):
        def parse(origin, target_rank, target=None, op=MPI.SUM):
            if target_rank == MPI.PROC_NULL:
                return None
            source, spec, holder = parse_access(origin, readonly, target_rank, target)
            return target_rank, source[:3], spec[:3], None, None, op, holder

        return parse

    def fetching(origin, result, target_rank, target=None, op=MPI.SUM):
        if target_rank == MPI.PROC_NULL:
            return None
        fetched = message(result, False, target_rank, 0)
        if op == MPI.NO_OP and origin is None:
            origin = [None, 0, fetched[2]]
        source, spec, holder = parse_access(origin, True, target_rank, target)
        return target_rank, source[:3], spec[:3], fetched, None, op, (holder, fetched[3])

    def fetch(origin, result, target_rank, target_disp=0, op=MPI.SUM):
        if target_rank == MPI.PROC_NULL:
            return None
        source = single("origin", origin, True, target_rank)
        fetched = single("result", result, False, target_rank)
        return target_rank, source[:3], (target_disp, 1, source[2]), fetched, None, op, (source[3], fetched[3])

    def swap(origin, compare, result, target_rank, target_disp=0):
        if target_rank == MPI.PROC_NULL:
            return None
        source = single("origin", origin, True, target_rank)
        expected = single("compare", compare, True, target_rank)
        fetched = single("result", result, False, target_rank)
        holder = source[3], expected[3], fetched[3]
        return target_rank, source[:3], (target_disp, 1, source[2]), fetched, expected, None, holder

    return access, fetching, fetch, swap


def _notifying(function):
    def told(win, origin, target_rank, target=None, slot=0):
        from gormapy.MPI.msgbuffer import parse_access

        site = here("put_notify")
        number = 0
        try:
            known = windows[win._h]
            source, spec, _ = parse_access(origin, True, target_rank, target)
            to = known.ranks[target_rank]
            number = next(numbers)
            _tell(win, known, site, kinds.PUT, number, to, source[:3], spec[:3], None, None, None, False)
            # the target may go on before the call returns
            event(kinds.DONE, 0, None, number)
            event(kinds.NOTIFY, site, None, win._h, to, slot)
        except Exception:
            pass  # the function has a better error
        try:
            function(win, origin, target_rank, target, slot)
        except BaseException as error:
            if number:
                event(kinds.OP_FAILED, site, None, number)
            misuse(error, "put_notify", site, getattr(win, "_h", 0))
            raise

    return told


def _notified(function):
    def told(win, slot, count=1, timeout=None):
        came = function(win, slot, count, timeout)
        if came and win._h in windows:
            event(kinds.NOTIFIED, here("win_notified"), None, win._h, slot)
        return came

    return told


def _awaited(method):
    def told(self):
        yield from method(self)
        handle, slot = self._arguments[0]._h, int(self._arguments[1])
        if handle in windows:
            event(kinds.NOTIFIED, here("notified"), None, handle, slot)

    return told


def install():
    """Replace the methods of Win that start operations, and the functions of gormapy.notify."""
    from gormapy import MPI, notify

    access, fetching, fetch, swap = parsers()
    operations = {
        "Put": (kinds.PUT, access(True)),
        "Get": (kinds.GET, access(False)),
        "Accumulate": (kinds.ACCUMULATE, access(True)),
        "Get_accumulate": (kinds.GET_ACCUMULATE, fetching),
        "Fetch_and_op": (kinds.FETCH_AND_OP, fetch),
        "Compare_and_swap": (kinds.COMPARE_AND_SWAP, swap),
    }
    for name, (kind, parse) in operations.items():
        replace(MPI.Win, name, _operation(name, kind, parse))
    for name in ("Put", "Get", "Accumulate", "Get_accumulate"):
        kind, parse = operations[name]
        replace(MPI.Win, f"R{name.lower()}", _operation(f"R{name.lower()}", kind, parse, requested=True))
    notify.put_notify = wrapped(notify.put_notify, _notifying(notify.put_notify))
    notify.notified.__await__ = _awaited(notify.notified.__await__)
    notify.win_notified = wrapped(notify.win_notified, _notified(notify.win_notified))
