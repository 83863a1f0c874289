"""Messages without data, by which neighbours tell each other how far they are."""

import numpy as np

from gormapy import MPI


class Tokens:
    """Tell a set of neighbours something, and wait until all of them have told the same.

    The set must be mutual: who tells a rank is told by it. A tag stands for what is told.
    """

    def __init__(self, comm, neighbours, tag):
        nothing = np.empty(0)
        self.requests = []
        for neighbour in neighbours:
            self.requests.append(comm.Recv_init(nothing, neighbour, tag))
            self.requests.append(comm.Send_init(nothing, neighbour, tag))

    def exchange(self):
        """Tell all, and wait for all."""
        if self.requests:
            MPI.Prequest.Startall(self.requests)
            MPI.Request.Waitall(self.requests)

    def free(self):
        """Free the requests."""
        for request in self.requests:
            request.Free()
