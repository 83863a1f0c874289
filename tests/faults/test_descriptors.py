"""A process that has no descriptors left takes nobody for dead, and does not end itself."""

import pytest
from support.mpirun import ANY

pytestmark = pytest.mark.exhaustive

NONE_LEFT = """
import os, pickle, resource, time

def exhaust():
    "Take all descriptors there are, and let there be fewer than are open."
    taken = []
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
    try:
        while True:
            taken.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        pass
    resource.setrlimit(resource.RLIMIT_NOFILE, (4, hard))
    def back():
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for fd in taken:
            os.close(fd)
    return back

def eventfds():
    "Those of this process that are not of Go's run-time, which polls its own."
    found, theirs = [], set()
    for name in os.listdir("/proc/self/fd"):
        try:
            if "[eventfd]" in os.readlink(f"/proc/self/fd/{name}"):
                found.append(int(name))
            info = open(f"/proc/self/fdinfo/{name}").read()
        except OSError:
            continue
        theirs |= {int(line.split()[1]) for line in info.splitlines() if line.startswith("tfd:")}
    return [fd for fd in found if fd not in theirs]
"""


def test_peer_that_comes_while_no_descriptors_are_left(mpirun):
    # Longer than a rank waits for the launcher's word on a peer whose end it has seen.
    mpirun(
        2,
        NONE_LEFT
        + """
if os.environ["GORMAPY_JOB_RANK"] == "0":
    from rankside import *
    raise_flag("exhausted")
    back = exhaust()
    time.sleep(6.5)
    world.send("are you there?", dest=1)
    assert world.recv(source=1) == "yes"
    back()
else:
    while not os.path.exists("flag-exhausted"):
        time.sleep(0.01)
    from rankside import *
    assert world.recv(source=0) == "are you there?"
    time.sleep(0.5)  # rank 0 waits, and looks whether this one lives
    world.send("yes", dest=0)
world.Barrier()
""",
    )


def test_end_of_a_peer_is_noticed_once_there_are_descriptors(mpirun):
    result = mpirun(
        2,
        NONE_LEFT
        + """
if os.environ["GORMAPY_JOB_RANK"] == "0":
    from rankside import *
    raise_flag("exhausted")
    back = exhaust()
    world.recv(source=1)
    time.sleep(1)
    back()
    with fails(MPI.ERR_PROC_FAILED):
        world.recv(source=1)
    stamp("noticed")
else:
    while not os.path.exists("flag-exhausted"):
        time.sleep(0.01)
    from rankside import *
    world.send("here I am", dest=0)
""",
    )
    assert result.since("noticed") < 3, str(result)


@pytest.mark.parametrize("ranks", [1, 2])
def test_start_with_few_descriptors(mpirun, ranks):
    """Init with none, one, two, … descriptors to spare works, or says what it could not make."""
    ends = []
    for spare in range(16):
        result = mpirun(
            ranks,
            f"""
            import os, resource, time
            import gormapy
            gormapy.rc.initialize = False
            from gormapy import MPI
            fds = [os.open("/dev/null", os.O_RDONLY) for _ in range({spare} + 1)]
            for fd in fds:
                os.close(fd)
            soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            resource.setrlimit(resource.RLIMIT_NOFILE, (fds[-1], hard))  # {spare} are free
            try:
                MPI.Init()
            except Exception as error:
                print("refused:", error, flush=True)
                os._exit(3)
            time.sleep(0.4)
            MPI.COMM_WORLD.Barrier()
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            MPI.COMM_WORLD.Barrier()
            print("works", flush=True)
            """,
            expect=ANY,
        )
        refused = result.status == 3 and "too many open files" in result.stdout
        assert refused or result.status == 0, f"with {spare} descriptors to spare: {result}"
        ends.append(result.status)
    assert 0 in ends, ends
    assert ends == sorted(ends, reverse=True), ends


@pytest.mark.parametrize("instead", ["nothing", "readable"])
def test_descriptors_that_somebody_else_closes(mpirun, instead):
    """A program that closes what is not its own, as daemons do, loses no peer, and hears of the end of one."""
    result = mpirun(
        3,
        NONE_LEFT
        + f"""
if os.environ["GORMAPY_JOB_RANK"] == "2":  # until it comes, the others look for it now and then
    while not os.path.exists("flag-survived"):
        time.sleep(0.01)
from rankside import *
if rank == 0:
    while len(pidfds()) < 2:  # of the launcher and of rank 1
        time.sleep(0.01)
    closed = pidfds() + eventfds()
    assert len(closed) == 3, closed
    pipe = os.pipe()
    if {instead!r} == "readable":
        os.write(pipe[1], b"to be read")
    for fd in closed:
        if {instead!r} == "nothing":
            os.close(fd)
        else:
            os.dup2(pipe[0], fd)
    before = time.process_time()
    time.sleep(1)
    assert time.process_time() - before < 0.2, "the watcher spins"
    assert world.recv(source=1) == "still here"
    if {instead!r} != "nothing":
        assert {{os.readlink(f"/proc/self/fd/{{fd}}") for fd in closed}} == {{os.readlink(f"/proc/self/fd/{{pipe[0]}}")}}
    raise_flag("survived")
    world.recv(source=2)
    raise_flag("leave")
    with fails(MPI.ERR_PROC_FAILED):
        world.recv(source=1)
elif rank == 1:
    time.sleep(6.5)  # longer than rank 0 waits for the launcher's word
    world.send("still here", dest=0)
    await_flag("leave")
else:
    world.send("here I am", dest=0)
""",
    )
    assert result.stderr == "", str(result)
