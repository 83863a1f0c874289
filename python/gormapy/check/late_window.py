"""What has been put off on a window: operations, and the Lock or Start that comes before them."""

import contextlib
import random
import threading
import time

_ALL_OF, _SHARE, _LONGEST = 100, 0.02, 0.01  # pauses: of all first ones, then a share; seconds
START = "Start"  # the key of a Start among those of Locks, which are ranks

# Held while what has been put off is changed, never while it is done. Threads wait for each other by it.
changing = threading.Condition()

order = random.Random()
_pauses, _pace = 0, 1


def begin(seed):
    """Begin an order that follows from the seed; some ranks are slower than others by it."""
    global _pace
    order.seed(seed)
    _pace = order.choice((0.1, 1))


def _pause(times=1):
    """Let the other ranks go on: at first each time, later now and then. They may make their own pauses meanwhile."""
    global _pauses
    _pauses += 1
    if _pauses <= _ALL_OF or order.random() < _SHARE:
        time.sleep((1 + order.random()) / 2 * _LONGEST * _pace * times)


class LateWindow:
    """What is still to be done on a window.

    A thread takes what it does out of `operations` and `opening`, and names it in `doing` and `begun` until it is done:
    another thread that has to complete the same waits for that. A KeyboardInterrupt puts off again what is not done.
    """

    def __init__(self):
        self.operations = []
        self.doing = []
        self.opening = {}  # target -> a Lock that is not there yet; START -> a Start that has not been made
        self.begun = []  # keys of opening
        self.members = ()  # the ranks of the Start
        self.shown = False  # the program has the handle: nothing more is put off

    def is_free(self):
        """Report whether nothing has been put off."""
        return not (self.operations or self.doing or self.opening or self.begun)

    def forget(self):
        """Forget what has been put off."""
        self.operations, self.opening = [], {}

    def opens(self, rank):
        """Report whether the access to a rank has been put off."""
        keys = (*self.opening, *self.begun)
        return rank in keys or (START in keys and rank in self.members)

    def begin(self, rank=None):
        """Make the Lock and the Start that were put off; of locks, that of one target or of all."""

        def concerned(keys):
            return [key for key in keys if rank is None or key in (rank, START)]

        for key in concerned(list(self.opening)):
            with changing:
                opening = self.opening.pop(key, None)
                if opening is None:  # another thread makes it
                    continue
                self.begun.append(key)
            try:
                opening()
            except Exception:
                raise
            except BaseException:  # such as KeyboardInterrupt
                self.opening[key] = opening
                raise
            finally:
                with changing:
                    self.begun.remove(key)
                    changing.notify_all()
        with changing:
            changing.wait_for(lambda: not concerned(self.begun))

    def put_off(self, operation):
        """Have an operation be done later."""
        with changing:
            self.operations.append(operation)

    def do(self, rank=None):
        """Do the operations on one target, or on all."""

        def concerned(operations):
            return [o for o in operations if rank is None or o.rank == rank]

        _pause()
        with changing:
            chosen, others = concerned(self.operations), set(concerned(self.doing))
            self._take(chosen)
        with self._doing(chosen):
            self.begin(rank)
            keys = sorted(order.random() for o in chosen if o.ordered)
            places = [keys.pop(0) if o.ordered else order.random() for o in chosen]
            _do_all([chosen[i] for i in sorted(range(len(chosen)), key=places.__getitem__)])
        with changing:
            changing.wait_for(lambda: others.isdisjoint(self.doing))

    def do_locally(self, rank=None):
        """Fill the buffers of this rank, and take over those that are read."""
        with changing:
            chosen = [o for o in self.operations if rank is None or o.rank == rank]
            taken = not any(o.fills for o in chosen) and all(o.take_origin() for o in chosen)
        if taken:
            self.begin(rank)
        else:
            self.do(rank)

    def do_one(self, operation):
        """Do an operation, after accumulates to its target that come before; report whether it was still to do."""
        with changing:
            if operation in self.doing:
                changing.wait_for(lambda: operation not in self.doing)
                return True
            if operation not in self.operations:
                return False
            before = self.operations[: self.operations.index(operation)] if operation.ordered else []
            chosen = [*(o for o in before if o.ordered and o.rank == operation.rank), operation]
            self._take(chosen)
        with self._doing(chosen):
            _do_all(chosen)
        return True

    def _take(self, chosen):
        taken = set(chosen)
        self.operations = [o for o in self.operations if o not in taken]
        self.doing += chosen

    @contextlib.contextmanager
    def _doing(self, chosen):
        """Have operations that were taken be named as what is done now."""
        left, mine = [], set(chosen)
        try:
            yield
        except Exception:
            raise
        except BaseException:
            left = [o for o in chosen if not o.done]
            raise
        finally:
            with changing:
                self.doing = [o for o in self.doing if o not in mine]
                self.operations[:0] = left
                changing.notify_all()


def _do_all(operations):
    """Do operations, with a pause somewhere in between, in which other ranks see only those that were done.

    One that fails keeps none from being done; the first error is raised at the end.
    """
    failed = None
    pause = order.randrange(1, len(operations)) if len(operations) > 1 else 0
    for i, operation in enumerate(operations):
        if i == pause > 0:
            _pause(2)
        try:
            operation.do()
        except Exception as error:
            failed = failed or error
    if failed is not None:
        raise failed
