"""The command line: that of the original, and some long options."""

import getopt
import importlib.util
import os
from dataclasses import dataclass

from gormapy import MPI

from . import device
from .grid import part
from .kernel import KERNELS, compiled
from .methods import MEMORIES, METHODS

HELP = f"""usage: mpiexec -n RANKS python -m gormapy.examples.ghost_exchange [options]

  -x RANKS, -y RANKS  ranks in each direction (default: as square as the number of ranks allows)
  -i CELLS, -j CELLS  cells of the whole grid in x and y (default: 2000)
  -h CELLS            width of the halo (default: 2)
  -I ITERATIONS       default: 1000
  -c                  exchange the corners of the halo, too
  -t                  print the timings on one line as well, and those of all ranks
  -p, --print         print the field, if it is small: at most 100 columns with the halos

  --method NAME       {", ".join(METHODS)} (default: sendrecv)
  --memory NAME       where strips of cells are kept (default: the method's first)
{{memories}}
  --kernel NAME       {", ".join(KERNELS)} (default: numba if it is installed for all ranks, else numpy)
  --array NAME        where fields are: numpy, or cupy for the memory of a GPU (halos go through the host's)
  --overlap           compute the cells that neighbours need first, and the others while those travel;
                      with {", ".join(name for name, way in METHODS.items() if way.OVERLAPS)}
  --barrier           wait for all ranks before each update of the ghost cells, and time that apart
  --self-test         check the halos first, for any size; small grids are always checked
  --plot FILE         draw the result
  --trace FILE        record what the ranks do
  --help              this text"""

ABOUT_MEMORIES = {
    "implicit": "new buffers, and a new window over them, in every exchange",
    "packed": "buffers made once",
    "direct": "no buffers: datatypes describe the strips in the field, which is an ordinary array",
    "window": "no buffers: datatypes, and the field is the memory of a window, which others map",
    "shared": "a window of shared memory in which neighbours read",
}

LONG = (
    "print",
    "method=",
    "memory=",
    "kernel=",
    "array=",
    "overlap",
    "barrier",
    "self-test",
    "plot=",
    "trace=",
    "help",
)


class Refused(ValueError):
    """The options make no sense; the message says why."""


@dataclass
class Options:
    """The options of the user."""

    x: int = 0
    y: int = 0
    i: int = 2000
    j: int = 2000
    h: int = 2
    I: int = 1000  # noqa: E741 (the original's name)
    c: bool = False
    t: bool = False
    print: bool = False
    method: str = "sendrecv"
    memory: str = ""
    kernel: str = ""
    array: str = "numpy"
    overlap: bool = False
    barrier: bool = False
    self_test: bool = False
    plot: str = ""
    trace: str = ""
    help: bool = False


def parse(args, size, nodes=1, numba=False):
    """Return the options for a job of `size` ranks on some nodes, which all have Numba or not; raise `Refused`."""
    options = Options()
    try:
        pairs, rest = getopt.gnu_getopt(args, "cph:I:i:j:tx:y:", LONG)
    except getopt.GetoptError as error:
        raise Refused(explain(error)) from None
    if rest:
        raise Refused(f"there is no argument {rest[0]!r}: options only")
    for option, value in pairs:
        name = {"p": "print"}.get(option.lstrip("-"), option.lstrip("-").replace("-", "_"))
        if isinstance(getattr(options, name), bool):
            setattr(options, name, True)
        elif isinstance(getattr(options, name), int):
            setattr(options, name, number(option, value))
        else:
            setattr(options, name, value)
    if not options.help:
        choose(options)
        if options.memory == "shared" and nodes > 1:
            raise Refused(f"--method {options.method} needs ranks that share memory, and these are on {nodes} nodes")
        divide(options, size, {option.lstrip("-") for option, _ in pairs})
        require(options)
        options.kernel = options.kernel or ("numba" if numba and options.array == "numpy" else "numpy")
    return options


def explain(error):
    """Return the error in the form of the command line, in the original's words if it has such an error."""
    option = ("-" if len(error.opt) == 1 else "--") + error.opt
    if "requires argument" in error.msg:
        return f"Option {option} requires an argument."
    if "not recognized" in error.msg:
        return f"Unknown option {option}"
    return error.msg[:1].upper() + error.msg[1:]


def number(option, text):
    """Return the value of an option that is a count."""
    least = 0 if option == "-I" else 1
    try:
        value = int(text)
    except ValueError:
        raise Refused(f"Option {option}: {text!r} is not a whole number") from None
    if value < least:
        raise Refused(f"Option {option}: {value} is less than {least}")
    if value >= 1 << 31:
        raise Refused(f"Option {option}: {value} is more than {(1 << 31) - 1}")
    return value


def choose(options):
    """Check the names, and that method and memory go together."""
    for name, known in (("method", METHODS), ("kernel", KERNELS), ("array", ("numpy", "cupy"))):
        if getattr(options, name) not in known and (name, options.kernel) != ("kernel", ""):
            raise Refused(f"Option --{name}: {getattr(options, name)!r} is none of {', '.join(known)}")
    able = METHODS[options.method].MEMORIES
    options.memory = options.memory or able[0]
    if options.memory not in MEMORIES:
        raise Refused(f"Option --memory: {options.memory!r} is none of {', '.join(MEMORIES)}")
    if options.overlap and not METHODS[options.method].OVERLAPS:
        overlapping = ", ".join(name for name, way in METHODS.items() if way.OVERLAPS)
        raise Refused(f"--overlap is nothing for --method {options.method}, only for {overlapping}")
    if options.overlap and options.array != "numpy":
        raise Refused(f"--overlap is nothing for --array {options.array}")
    if options.memory not in able:
        raise Refused(
            f"--memory {options.memory} is nothing for --method {options.method}, which has {', '.join(able)}"
        )


def divide(options, size, given):
    """Choose the process grid and check that the parts of the grid are large enough."""
    for one in ("x", "y"):
        if one in given and size % getattr(options, one):
            raise Refused(f"-{one} {getattr(options, one)} does not divide the number of ranks, {size}")
    if not (options.x and options.y):
        options.x, options.y = MPI.Compute_dims(size, [options.x, options.y])
    if options.x * options.y != size:
        raise Refused(
            f"-x {options.x} -y {options.y} needs {options.x * options.y} ranks, but there are {size}: "
            f"mpiexec -n {options.x * options.y}"
        )
    smallest = min(
        part(cells, ranks, coord)[1]
        for cells, ranks in ((options.i, options.x), (options.j, options.y))
        for coord in range(ranks)
    )
    if smallest < options.h:
        raise Refused(
            "Error -- local size of grid is less than the halo size: "
            f"a rank has {smallest} cells in one direction, and the halo (-h) is {options.h}"
        )
    halos = 2 * options.h
    need = 2 * 8 * (options.i + options.x * halos) * (options.j + options.y * halos)
    there_are = available()
    if there_are and need > there_are:
        raise Refused(
            f"the fields of {options.i} x {options.j} cells need {need >> 20} MiB, "
            f"and {there_are >> 20} MiB are available: fewer cells (-i, -j), or a larger machine"
        )


def available():
    """Return how many bytes of memory the machine has available, 0 if unknown."""
    try:
        with open("/proc/meminfo") as lines:
            return next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return 0


def require(options):
    """Check that the requested packages are installed, before anything is computed."""
    if options.array == "cupy":
        if options.kernel not in ("", "numpy"):
            raise Refused(f"--array cupy has a kernel of its own: leave --kernel {options.kernel} out")
        if why := device.missing():
            raise Refused(f"--array cupy: {why}")
    if options.kernel == "numba" and importlib.util.find_spec("numba") is None:
        raise Refused("--kernel numba needs Numba, which is not installed: pip install numba")
    if options.plot:
        if importlib.util.find_spec("matplotlib") is None:
            raise Refused("--plot needs matplotlib, which is not installed: pip install 'gormapy[plot]'")
        drawable(options.plot)
        writable("--plot", options.plot)
    if options.trace:
        if importlib.util.find_spec("gormapy.trace") is None:
            raise Refused("--trace needs gormapy.trace, which this gormapy does not have")
        writable("--trace", options.trace)


def drawable(path):
    """Check that matplotlib has the format that a file's name says."""
    from matplotlib.backend_bases import FigureCanvasBase

    known = FigureCanvasBase.get_supported_filetypes()
    suffix = os.path.splitext(path)[1][1:].lower()
    if suffix and suffix not in known:  # without a suffix matplotlib makes a PNG file
        raise Refused(f"Option --plot: there is no format {suffix!r}, only {', '.join(sorted(known))}")


def writable(option, path):
    """Check that a file can be made: after the iterations it is too late to find out."""
    folder = os.path.dirname(path) or "."
    if os.path.isdir(path) or not os.path.isdir(folder) or not os.access(folder, os.W_OK):
        raise Refused(f"Option {option}: {path!r} can't be written")


def help_text():
    """Return the text of --help."""
    lines = [f"      {name:9}         {about}" for name, about in ABOUT_MEMORIES.items()]
    able = [f"      with {method}: {', '.join(way.MEMORIES)}" for method, way in METHODS.items()]
    return HELP.format(memories="\n".join(lines + able))


def agree(comm, args):
    """Read the command line on rank 0 and return it on all ranks.

    Where it makes no sense, rank 0 prints one message and all ranks leave with the status 1.
    """
    outcome = None
    node = comm.Split_type(MPI.COMM_TYPE_SHARED)
    nodes = comm.allreduce(int(node.Get_rank() == 0))
    node.Free()
    numba = comm.allreduce(compiled(), MPI.LAND)
    if comm.Get_rank() == 0:
        try:
            outcome = parse(args, comm.Get_size(), nodes, numba)
        except Refused as error:
            outcome = str(error)
    return comm.bcast(outcome)
