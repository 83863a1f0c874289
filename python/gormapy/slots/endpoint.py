"""The base classes of producers and consumers of channels: waits, iteration, async forms.

# The ring

Tokens are in memory of the consumer. Two words only increase, and a token's place is its number modulo the
capacity: *head* has twice the number of tokens pushed, plus one when the channel is closed; producers store it
after the token is written, and it is at the consumer, which waits for it. *tail* has the number of tokens popped;
the consumer stores it when it has finished with a token, and it is where producers wait for room. When a side dies
both words stay valid: an announced token is complete, any other does not exist. The other side gets the announced
tokens, and then an error. tests/slots/test_interleavings.py runs the ends of all kinds of channels, and the locks,
through every interleaving of their accesses.

A word's `last` is the value that this process stored last. It changes with the store in one step of the extension: an
exception between two lines of Python, such as KeyboardInterrupt, can't make the two differ.
"""

from gormapy._ext import core

from .errors import Closed, Empty, EmptyTimeout, Full, FullTimeout, SlotError
from .wait import Deadline, Naps


class Retired:
    """The substitute of a word of a channel whose space has been closed."""

    def __getattr__(self, name):
        raise SlotError("the channel can't be used any more: its space has been closed")


RETIRED = Retired()


class Endpoint:
    """One end of a channel: `capacity` is the number of tokens that it has room for.

    An end is for one thread at a time. It can be used until its space is closed.
    """

    _role = "end"
    _words_of = ("_head", "_tail")  # the attributes that are words of the ring

    def __init__(self, space, tag, capacity, kind, peers):
        self.capacity = capacity
        self.tag = tag
        self._space, self._kind, self._peers = space, kind, peers
        self._dtype = kind.dtype
        self._nbytes = kind.nbytes
        space._ends.add(self)

    def _retire(self):
        """Release all words: their memory may be unmapped."""
        for name in self._words_of:
            setattr(self, name, RETIRED)

    def __repr__(self):
        if getattr(self, self._words_of[0]) is RETIRED:
            return f"<{self._role} of channel {self.tag!r}, closed space>"
        return f"<{self._role} of channel {self.tag!r}, {self.depth} of {self.capacity} tokens>"

    def _check_peers(self):
        """Raise SlotError if no rank is left at the other end."""
        gone = [core.WinGone(self._space._win._h, rank) for rank in self._peers]
        if gone and all(gone):
            raise SlotError(f"channel {self.tag!r} can't go on: {gone[0]}")

    async def _poll(self, attempt, error, timeout):
        """Call a function until it does not raise an error, letting other tasks run in between."""
        import asyncio

        deadline, naps, gone = Deadline(timeout), Naps(), None
        while True:
            try:
                return attempt()
            except Closed:
                raise
            except error as problem:
                if gone is not None:
                    raise gone from None
                if deadline.over():
                    late = FullTimeout if error is Full else EmptyTimeout
                    raise late(f"{problem} (waited for {timeout} s)") from None
            try:
                self._check_peers()
            except SlotError as problem:
                gone = problem  # their last accesses may have come after the attempt: try once more
                continue
            if not self._space.mapped:
                core.Progress()
            await asyncio.sleep(naps.length(deadline.left()))

    @property
    def is_full(self):
        """Whether there is no room for another token."""
        return self.depth >= self.capacity

    @property
    def is_empty(self):
        """Whether there is no token."""
        return self.depth == 0


class Producer(Endpoint):
    """The end of a channel that pushes; a `with` block closes it, unless an exception ends the block."""

    _role = "producer"

    def push(self, token, timeout=0):
        """Push a token; wait for room at most `timeout` seconds (0: not at all, None: as long as it takes).

        The token is copied: it may be changed when the call returns.

        Errors: Full if there is no room (FullTimeout, which also is a TimeoutError, after a wait); ValueError for a
        token that can never fit; Closed after `close`; SlotError or MPI.Exception if the consumer has ended.
        """
        raise NotImplementedError

    async def push_async(self, token, timeout=None):
        """Push a token, letting other tasks run while there is no room.

        `timeout` is in seconds (None: as long as it takes); the errors are those of `push`.
        """
        return await self._poll(lambda: self.push(token), Full, timeout)

    def close(self):
        """Announce to the consumer that this producer pushes no more."""
        raise NotImplementedError

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        if kind is None:  # otherwise the consumer must not take the tokens so far for all
            self.close()

    def _full(self, timeout):
        if timeout is not None and timeout <= 0:
            return Full(
                f"channel {self.tag!r} is full ({self.capacity} tokens): the consumer must pop, or give push a timeout"
            )
        return FullTimeout(f"channel {self.tag!r} had no room for a token within {timeout} s")


class Consumer(Endpoint):
    """The end of a channel that pops; iteration gives tokens until the channel is closed and empty."""

    _role = "consumer"

    def pop(self, timeout=0):
        """Return the next token; wait for it at most `timeout` seconds (0: not at all, None: as long as it takes).

        Errors: Empty if there is none (EmptyTimeout, which also is a TimeoutError, after a wait); Closed if there will
        be none; SlotError or MPI.Exception if all producers have ended without closing.
        """
        raise NotImplementedError

    def wait(self, timeout=None):
        """Wait until there is a token, without popping it; the errors are those of `pop`."""
        raise NotImplementedError

    def peek(self, index=0):
        """Return the next token, or the one `index` places behind it, without a copy: valid until it is popped."""
        raise NotImplementedError

    def drop(self, count=1):
        """Pop tokens without returning them, after `peek`."""
        raise NotImplementedError

    async def pop_async(self, timeout=None):
        """Return the next token, letting other tasks run until there is one."""
        return await self._poll(self.pop, Empty, timeout)

    def __iter__(self):
        while True:
            try:
                token = self.pop(timeout=None)
            except Closed:
                return
            yield token

    async def __aiter__(self):
        while True:
            try:
                token = await self.pop_async()
            except Closed:
                return
            yield token

    def _empty(self, timeout):
        if timeout is not None and timeout <= 0:
            return Empty(
                f"channel {self.tag!r} is empty: a producer has to push, or give pop a timeout to wait for that"
            )
        return EmptyTimeout(f"no token came by channel {self.tag!r} within {timeout} s")

    def _closed(self):
        return Closed(f"channel {self.tag!r} is closed, and all of its tokens have been popped")
