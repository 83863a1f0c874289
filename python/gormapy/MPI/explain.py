"""Texts of errors about arguments: only calls that fail use this module.

A text says what was given, what the function takes, and what to write instead.
"""

import sys

from gormapy._ext import fast


def calling():
    """Return the name of the MPI call that the program made, "message" if no method of these modules was called."""
    package = __name__.rpartition(".")[0]
    frame = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").startswith(package):
        name = frame.f_code.co_name
        if name[:1].isupper():
            return f"Win.{name}" if frame.f_globals["__name__"].endswith(".win") else name
        frame = frame.f_back
    return "message"


def _objects_go_by(call):
    """Return advice on the lower-case form of a call, for Python objects; empty if it has none."""
    from .intracomm import Intracomm

    for name in (call.lower(), call.lower().removesuffix("v"), call.lower().removeprefix("i").removesuffix("v")):
        if callable(getattr(Intracomm, name, None)):
            example = "obj = comm.recv(...)" if name == "recv" else f"comm.{name}"
            return f"; Python objects go by the lower-case {example}"
    return ""


def _numbers_go_by(obj, readonly):
    """Return advice on how numbers are sent or received, empty if the object has none."""
    numbers = obj if isinstance(obj, (list, tuple)) else [obj]
    if not numbers or not all(isinstance(item, (int, float, complex)) for item in numbers):
        return ""
    if readonly:
        return (
            f"; numbers as an array: np.array({obj!r})"
            if len(repr(obj)) < 40
            else "; numbers as an array: np.array(...)"
        )
    return "; numbers arrive in an array, such as np.empty(n)"


def _advice(obj, readonly):
    call = calling()
    advice = _objects_go_by(call) + _numbers_go_by(obj, readonly)
    if isinstance(obj, str) and readonly:
        advice += "; text as bytes: text.encode()"
    return call, advice


def no_buffer(obj, readonly):
    """Return the error for an object that is neither a buffer nor a specification of one."""
    call, advice = _advice(obj, readonly)
    got = f"the class {obj.__name__}" if isinstance(obj, type) else "None" if obj is None else type(obj).__name__
    if obj is None:
        advice = "; None is for ranks that take no part in this side of the call"
    return TypeError(
        f"{call}: expecting a buffer (such as a NumPy array) or [buffer, count, datatype], got {got}{advice}"
    )


def no_specification(spec, readonly, error=None):
    """Return the error for a list or tuple that is no buffer specification."""
    call, advice = _advice(spec, readonly)
    what = type(spec).__name__
    stands = f"{call}: a {what} stands for [buffer, count, datatype]"
    if error is not None:
        return ValueError(f"{stands}: expecting 2 to 4 items, got {len(spec)}{advice}")
    return TypeError(f"{stands}, but its first item is no buffer: it is {type(spec[0]).__name__}{advice}")


# Memory
# ------


def unusable(obj, view, readonly, window):
    """Return the error for memory that MPI cannot use as it is, None if it can."""
    what = type(obj).__name__
    call = calling()
    if view.readonly and not readonly:
        remedy = "pass a bytearray or a NumPy array" if isinstance(obj, bytes) else "pass a copy that can be written"
        return BufferError(f"{call}: {what} is read-only, but MPI writes to this buffer; {remedy}")
    if view.contiguous:
        return None
    axis, expected = gap(view)
    text = (
        f"{call}: {what} of shape {view.shape} is not contiguous: axis {axis} has a stride of "
        f"{view.strides[axis]} bytes where {expected} are contiguous; "
    )
    derived = "describe it by a derived datatype (such as MPI.DOUBLE.Create_vector) over the whole array"
    if window:
        return BufferError(
            text + "make the window over a contiguous array, or over the whole one that this is a part of"
        )
    if readonly:
        return BufferError(text + f"send np.ascontiguousarray(...) of it, or {derived}")
    return BufferError(text + f"receive into a contiguous array and copy from it (a[...] = received), or {derived}")


def gap(view):
    """Return the axis that keeps a buffer from being contiguous, and the stride that it would have."""
    expected = view.itemsize
    for axis in reversed(range(view.ndim)):
        if view.shape[axis] > 1 and view.strides[axis] != expected:
            return axis, expected
        expected *= view.shape[axis]
    return view.ndim - 1, view.itemsize


def no_format(obj, error):
    """Return the error for elements that NumPy cannot describe to others, such as dates; None for other arrays."""
    if type(obj).__module__ != "numpy":
        return None
    return ValueError(f"{calling()}: {error}; pass its elements as integers of the same size, such as a.view('i8')")


# Datatypes and operations
# ------------------------


def datatype_meant(spec):
    """Return the constant for an object that names a datatype elsewhere (NumPy, Python), None if it names none."""
    from .typecode import _typedict

    numpy = sys.modules.get("numpy")
    if numpy is None:
        return None
    try:
        dtype = numpy.dtype(spec)
        datatype = _typedict.get("bfloat16" if dtype.name == "bfloat16" else dtype.char)
    except (TypeError, ValueError, SyntaxError):
        return None
    return f"MPI.{datatype.name.removeprefix('MPI_')}" if datatype is not None else None


def no_datatype(spec):
    """Return the error for an argument that names no datatype."""
    meant = datatype_meant(spec)
    advice = (
        f"{meant} is meant?"
        if meant
        else "a datatype is a constant such as MPI.DOUBLE, or a type code such as 'd' or 'i4'"
    )
    return KeyError(f"cannot map {spec!r} to MPI datatype: {advice}")


def no_elements(format):
    """Return the error for a buffer whose elements have no datatype."""
    bare = format.lstrip("@=<|")
    if bare == "O":
        advice = "its elements are Python objects, which go by the lower-case calls (send, bcast, ...)"
    elif bare.endswith("w") or bare.endswith("u"):
        advice = "its elements are text: send it by a lower-case call (send, bcast, ...), or as bytes"
    elif bare.startswith("T{"):
        advice = "describe its elements by MPI.Datatype.Create_struct, or move bytes: [a, MPI.BYTE]"
    else:
        advice = "name a datatype of the same layout: [buffer, count, datatype]"
    return KeyError(f"cannot map {format!r} to MPI datatype: {advice}")


_MEANT = {sum: "MPI.SUM", max: "MPI.MAX", min: "MPI.MIN", all: "MPI.LAND", any: "MPI.LOR"}


def no_operation(op):
    """Return the error for an argument that is no reduction operation."""
    try:
        meant = _MEANT.get(op)
    except TypeError:
        meant = None
    got = type(op).__name__ if op is not None else "None"
    if callable(op) and not meant:
        advice = "MPI.Op.Create(function) makes one of a function of two buffers"
    else:
        advice = f"{meant or 'MPI.SUM'} is one"
    return TypeError(f"{calling()}: op: expecting an operation, got {got}; {advice}")


# Other arguments
# ---------------


def no_integer(value, what):
    """Return the error for an argument that is no integer."""
    got = type(value).__name__
    advice = ""
    if getattr(value, "_family", "") == "Comm":
        advice = "; a communicator is given by name: comm=..."
    elif isinstance(value, type) or got.endswith("DType"):
        meant = datatype_meant(value)
        advice = f"; {meant} is meant?" if meant else ""
    elif isinstance(value, str) and value.strip().isdigit():
        advice = f"; int({value!r}) is one"
    return TypeError(f"{what}: expecting an integer, got {got}{advice}")


def no_target_rank(call, arguments):
    """Return the error for a one-sided call without the rank of its target."""
    after = arguments[arguments.index("target_rank") + 1]  # target or target_disp
    return TypeError(
        f"Win.{call}: the rank of the target is missing: it is the argument target_rank, "
        f"win.{call}({', '.join(arguments)}); {after} is the place in that rank's part of the window"
    )


def no_memory(obj):
    """Return the error for an object whose memory a window cannot expose."""
    got = "a number" if isinstance(obj, (int, float)) else type(obj).__name__
    advice = (
        "Win.Allocate(nbytes) makes a window with memory of its own" if isinstance(obj, int) else "np.array(...) is one"
    )
    return TypeError(f"{calling()}: expecting memory that can be written (such as a NumPy array), got {got}; {advice}")


def no_requests(given):
    """Return the error for an argument that is no list of requests."""
    if not isinstance(given, (list, tuple)):
        advice = "; Wait and Test are for a single one" if hasattr(given, "Wait") else ""
        return TypeError(f"{calling()}: expecting a list of requests, got {type(given).__name__}{advice}")
    at, wrong = next((i, item) for i, item in enumerate(given) if not isinstance(item, fast.Request))
    return TypeError(f"{calling()}: expecting a list of requests, got {type(wrong).__name__} at index {at}")


# Pickling
# --------


def note_unpicklable(error, obj, dumps, call):
    """Add to an error of pickle the part of the object that caused it. call: see calling_object."""
    if not hasattr(error, "add_note"):  # Python 3.10
        return
    path, culprit = _culprit(obj, dumps)
    where = f"the object{path}" if path else "the object"
    error.add_note(
        f"{calling_object(call)}: {where}, {_describe(culprit)}, can't be pickled, "
        "and objects travel between processes as pickles"
    )


def note_no_pickle(error, data, call):
    """Add to an error of pickle that the received data are no pickled object, if they do not begin like one."""
    if bytes(data[:1]) == b"\x80" or not hasattr(error, "add_note"):  # how pickles begin; Python 3.10
        return
    error.add_note(
        f"{calling_object(call)}: the {len(data)} bytes that came are no pickled object. Lower-case calls take what "
        "lower-case ones send; what comm.Send and its like send, arrays, has to be received by comm.Recv"
    )


def calling_object(call):
    """Return the name of the lower-case call that the program made: `call`, if that is one of the extension itself."""
    package = __name__.rpartition(".")[0]
    frame, name = sys._getframe(1), "pickle"
    while frame is not None and frame.f_globals.get("__name__", "").startswith(package):
        name = frame.f_code.co_name
        frame = frame.f_back
    return call if call and name.startswith("_") else name


def _describe(obj):
    name = getattr(obj, "__qualname__", None)
    return f"{type(obj).__name__} {name}" if isinstance(name, str) else f"of type {type(obj).__name__}"


def _parts(obj):
    """Yield the parts of an object, each with the expression that the program uses for it."""
    if isinstance(obj, dict):
        for key, value in obj.items():
            yield f"[{key!r}]", value
    elif isinstance(obj, (list, tuple)):
        for i, value in enumerate(obj):
            yield f"[{i}]", value
    elif isinstance(obj, (set, frozenset)):
        for value in obj:
            yield "", value
    elif type(obj).__reduce__ is object.__reduce__ and isinstance(getattr(obj, "__dict__", None), dict):
        for name, value in vars(obj).items():
            yield f".{name}", value


def _culprit(obj, dumps, depth=8):
    """Return the innermost part of an object that can't be pickled, and the expression for it."""
    path = ""
    while depth > 0:
        depth -= 1
        for step, part in _parts(obj):
            try:
                dumps(part)
            except Exception:
                path, obj = path + step, part
                break
        else:
            break
    return path, obj
