"""Messages without data, by which neighbours synchronise."""

import numpy as np

from gormapy import MPI


class Tokens:
    """Send a token to each of a set of neighbours, and wait for the same token from all of them.

    The sets must be mutual: each rank of a set has this one in its own. The tag distinguishes tokens.
    """

    def __init__(self, comm, neighbours, tag):
        nothing = np.empty(0)
        self.requests = []
        for neighbour in neighbours:
            self.requests.append(comm.Recv_init(nothing, neighbour, tag))
            self.requests.append(comm.Send_init(nothing, neighbour, tag))

    def exchange(self):
        """Send to all, and wait for all."""
        if self.requests:
            MPI.Prequest.Startall(self.requests)
            MPI.Request.Waitall(self.requests)

    def free(self):
        """Free the requests."""
        for request in self.requests:
            request.Free()
