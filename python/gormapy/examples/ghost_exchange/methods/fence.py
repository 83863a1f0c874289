"""One-sided puts between fences, which all ranks call."""

from .onesided import OneSided


class Fence(OneSided):
    """Exchange halos by puts between fences.

    The first fence means that the halos, or the receive buffers, may be written; each of the others, that all earlier
    puts have arrived.
    """

    def update(self, k):
        """Fill the halo of fields[k]."""
        self.begin()
        self.win.Fence()
        for phase in self.phases:
            for strip in phase:
                self.put(strip, k)
            self.win.Fence()
            for strip in phase:
                self.unpack(strip, k)
        self.end()
