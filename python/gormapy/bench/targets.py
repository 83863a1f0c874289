"""What gormapy has set itself: how fast it wants to be beside its peers, or by the clock."""

from dataclasses import dataclass

# Rows that a program does most, and in which a peer may not be much ahead.
COMMON = ("ring", "fence", "barrier", "allreduce", "pingpong")
NEARLY = 1.2
FASTER = round(1 / 1.2, 2)
LATENCY = ("Put 8 B + Flush, Win.Allocate", "Get 8 B + Flush, Win.Allocate")
IMPORT = 60_000.0


@dataclass(frozen=True)
class Target:
    """A limit for the ratio to a peer's time, or for the microseconds themselves."""

    limit: float
    strict: bool = False  # the limit itself is too much
    absolute: bool = False  # of microseconds, not of a ratio
    peer: str = ""  # the peer that counts; without, the better one in the row

    def met(self, us, ratio):
        """Tell whether a time and its ratio are good enough; None if there is nothing to compare with."""
        value = us if self.absolute else ratio
        if value is None:
            return None
        return value < self.limit if self.strict else value <= self.limit

    def __str__(self):
        sign = "<" if self.strict else "<="
        if self.absolute:
            return f"{sign} {self.limit / 1000:g} ms"
        return f"{sign} {self.limit:g}" + (f" {self.peer}" if self.peer else "")


def target(loop, what, n, cores):
    """Return the Target of a row, or None if it has none."""
    if loop == "import":
        return Target(IMPORT, strict=True, absolute=True)
    if loop == "startup":
        return Target(1.0, peer="mpich")
    if n > cores:  # what laptops and notebooks do, and spinning libraries are bad at
        return Target(1.0, strict=True)
    if what in LATENCY:
        return Target(FASTER)
    return Target(NEARLY) if loop in COMMON else None
