"""Send numbers around a ring, with persistent requests.

    mpiexec -n 4 python -m gormapy.examples.ring

Every rank receives from its left and sends to its right neighbour. The requests are made once and started
in each turn.
"""

import numpy as np

from gormapy import MPI


def main(turns=5):
    """Send the rank, plus 100 in each turn, to the right."""
    comm = MPI.COMM_WORLD
    rank, size = comm.Get_rank(), comm.Get_size()
    right, left = (rank + 1) % size, (rank - 1) % size

    sendbuf = np.array(rank, dtype="i")
    recvbuf = np.array(-1, dtype="i")
    send_req = comm.Send_init(sendbuf, dest=right, tag=0)
    recv_req = comm.Recv_init(recvbuf, source=left, tag=0)

    for turn in range(turns):
        sendbuf[...] = rank + 100 * turn
        send_req.Start()
        recv_req.Start()
        MPI.Request.Waitall([send_req, recv_req])
        print(f"[iter {turn}] rank {rank} got {recvbuf} from {left}", flush=True)
        assert recvbuf == left + 100 * turn

    send_req.Free()
    recv_req.Free()


if __name__ == "__main__":
    main()
