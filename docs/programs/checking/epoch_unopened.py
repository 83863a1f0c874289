from gormapy import MPI

world = MPI.COMM_WORLD
win = MPI.Win.Allocate(32, 8, comm=world)
win.Lock_all()
if world.rank == 0:
    try:
        win.Unlock(1)
    except MPI.Exception as error:
        print(error)
win.Unlock_all()
win.Free()
