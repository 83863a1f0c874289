"""The performance targets of gormapy: relative to other MPIs, relative to NumPy, or in microseconds."""

from dataclasses import dataclass

# The operations that programs do most, in which no peer may be much faster.
COMMON = ("ring", "fence", "barrier", "allreduce", "pingpong")
NEARLY = 1.2
FASTER = round(1 / 1.2, 2)
MUCH_FASTER = round(1 / 1.5, 2)
TWICE = 0.5
NUMPY = 1.05  # of the time of NumPy's copy
KERNEL = 2.5  # times a peer's active message: what a copy through the kernel takes at least, for 8 bytes
IMPORT = 60_000.0
PASSIVE = (50.0, 1000.0)  # us, at most, in the median and of 99 in 100 accesses to a target that is busy
FAIR = (0.5, 2.0)  # of the mean number of turns

# Windows over memory that all ranks map, whether MPI or the program allocated it.
SHARED = ("Win.Allocate", "Win.Create on Alloc_mem")


@dataclass(frozen=True)
class Target:
    """A limit for the ratio to a peer's time, or for the measured value itself."""

    limit: float
    strict: bool = False  # the limit itself is too much
    absolute: bool = False  # of microseconds, not of a ratio
    peer: str = ""  # the peer that counts; without, the better one in the row
    beside: str = ""  # what the limit is for, if not time: a value of the row
    tail: float = 0.0  # limit for 99 %, in microseconds
    least: float = 0.0  # with `beside`, limit for the value named in `also`
    also: str = ""

    def met(self, us, ratio, more=None):
        """Tell whether a time and its ratio are good enough; None if there is nothing to compare with.

        `more` has other values of the row by name.
        """
        more = more or {}
        value = more.get(self.beside) if self.beside else us if self.absolute else ratio
        if value is None or (self.also and more.get(self.also) is None):
            return None
        if (self.tail and more.get("p99", 0.0) >= self.tail) or (self.also and more[self.also] < self.least):
            return False
        return value < self.limit if self.strict else value <= self.limit

    def __str__(self):
        sign = "<" if self.strict else "<="
        if self.also:
            return f"turns {self.least:g} to {self.limit:g} of the mean"
        if self.beside:
            return f"{sign} {self.limit:g} of NumPy"
        if self.tail:
            return f"{sign} {self.limit:g} us, 99 % {sign} {self.tail / 1000:g} ms"
        if self.absolute:
            return f"{sign} {self.limit / 1000:g} ms"
        return f"{sign} {self.limit:g}" + (f" {self.peer}" if self.peer else "")


def target(loop, what, n, cores):
    """Return the Target of a row, or None if it has none."""
    if loop == "import":
        return Target(IMPORT, strict=True, absolute=True)
    if loop == "startup":
        return Target(1.0, peer="mpich")
    if loop.startswith("osu_"):
        return None
    crowded = n > cores  # usual on laptops and in notebooks, and slow with libraries that spin
    of_window = _one_sided(loop, what, crowded)
    if of_window or loop == "contention":
        return of_window
    if crowded:
        return Target(1.0, strict=True)
    return Target(NEARLY) if loop in COMMON else None


def _one_sided(loop, what, crowded):
    """Return the Target of a row of one-sided communication, or None."""
    window = what.rpartition("Win.")[2].partition(", ")[0]
    shared = f"Win.{window}" in SHARED
    if loop.startswith("passive"):
        return Target(PASSIVE[0], strict=True, absolute=True, tail=PASSIVE[1])
    if loop == "contention" and "time per turn" in what:
        return Target(FAIR[1], beside="most", also="fewest", least=FAIR[0])
    if loop == "numpy_copy":
        return Target(NUMPY, beside="numpy")
    if loop == "transpose":
        return Target(TWICE)
    if loop in ("put_latency", "get_latency"):
        small = " 8 B " in what
        if shared:
            return Target(MUCH_FASTER) if small else None
        return Target((TWICE if crowded else KERNEL) if small else 1.0)
    if loop == "atomics" and shared:
        return Target(MUCH_FASTER)
    if loop == "lock_put_unlock" and shared:
        return Target(FASTER)
    if loop == "fence" and what.startswith("Put"):
        return Target(TWICE if crowded else FASTER)
    return None
