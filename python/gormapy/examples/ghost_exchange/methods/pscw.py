"""One-sided puts between Post, Start, Complete and Wait, which only neighbours call."""

from .onesided import OneSided


class Pscw(OneSided):
    """Exchange halos by puts for which each target opens its window to its neighbours alone.

    `Post` opens the window, `Start` waits until the neighbours have opened theirs, `Complete` ends this rank's puts,
    and `Wait` waits until the neighbours have ended theirs.
    """

    def __init__(self, grid, fields, corners, memory):
        super().__init__(grid, fields, corners, memory)
        world = grid.comm.Get_group()
        self.groups = [world.Incl([strip.neighbour for strip in phase]) for phase in self.phases]
        world.Free()

    def update(self, k):
        """Fill the halo of fields[k]."""
        self.begin()
        for phase, group in zip(self.phases, self.groups):
            if not phase:  # no neighbour in this direction, though others have
                continue
            self.win.Post(group)
            self.win.Start(group)
            for strip in phase:
                self.put(strip, k)
            self.win.Complete()
            self.win.Wait()
            for strip in phase:
                self.unpack(strip, k)
        self.end()

    def free(self):
        """Free groups, window and datatypes; collective."""
        for group in self.groups:
            group.Free()
        super().free()
