"""Files: views, explicit offsets, the individual and the shared pointer, split collective calls."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np

from gormapy import MPI


def shared_name(comm: MPI.Intracomm) -> str:
    name = str(Path(tempfile.mkdtemp()) / "data") if comm.rank == 0 else None
    found: str = comm.bcast(name)
    return found


def blocks(comm: MPI.Intracomm, path: str | Path) -> None:
    """Write a block of each rank, and read it again through a view."""
    mine = np.full(4, comm.rank, "i")
    file = MPI.File.Open(comm, path, MPI.MODE_CREATE | MPI.MODE_RDWR, MPI.INFO_NULL)
    file.Set_size(0)
    file.Write_at_all(comm.rank * mine.nbytes, mine)
    found = np.empty_like(mine)
    status = MPI.Status()
    file.Read_at(comm.rank * mine.nbytes, [found, MPI.INT], status)
    assert status.Get_count(MPI.INT) == 4 and (found == mine).all()
    filetype = MPI.INT.Create_vector(4, 1, comm.size)
    filetype.Commit()
    file.Set_view(comm.rank * MPI.INT.Get_size(), MPI.INT, filetype, "native")
    displacement, etype, _, datarep = file.Get_view()
    assert displacement == comm.rank * 4 and etype == MPI.INT and datarep == "native"
    file.Write_all((mine, 4, MPI.INT))
    file.Seek(0, MPI.SEEK_SET)
    file.Read_all(found)
    file.Read_all_begin(np.empty(0, "i"))
    file.Read_all_end(np.empty(0, "i"), None)
    requests: list[MPI.Request] = [file.Iread_at(0, found), file.Iwrite_at(0, mine)]
    MPI.Request.Waitall(requests)
    filetype.Free()
    file.Sync()
    assert file.Get_size() == file.size and file.amode & MPI.MODE_RDWR
    file.Close()


def log(comm: MPI.Intracomm, path: bytes) -> int:
    """Append lines by the shared pointer."""
    with_hints = MPI.Info.Create({"access_style": "write_once"})
    file = MPI.File.Open(comm, path, MPI.MODE_CREATE | MPI.MODE_WRONLY, info=with_hints)
    with_hints.Free()
    file.Set_atomicity(True)
    file.atomicity = False
    file.Write_shared(b"a line\n")
    file.Write_ordered(bytearray(b"another\n"))
    position: int = file.Get_position_shared()
    file.Set_errhandler(MPI.ERRORS_RETURN)
    file.Close()
    return position


def main() -> None:
    comm = MPI.COMM_WORLD
    name = shared_name(comm)
    blocks(comm, Path(name))
    assert log(comm, os.fsencode(name)) == 15 * comm.size
    comm.Barrier()
    if comm.rank == 0:
        MPI.File.Delete(name)
        Path(name).parent.rmdir()


if __name__ == "__main__":
    main()
