"""Objects between the kernel and the ranks, as pickles with large buffers beside them."""

import pickle


def _dumps():
    try:
        from cloudpickle import dumps  # also pickles functions and classes of the notebook
    except ImportError:
        return pickle.dumps
    return dumps


def dump(obj):
    """Return the payloads of an object."""
    buffers = []
    try:
        data = _dumps()(obj, protocol=5, buffer_callback=buffers.append)
        return [data, *(b.raw() for b in buffers)]
    except BufferError:  # a buffer that is not contiguous
        return [_dumps()(obj, protocol=5)]


def load(payloads):
    """Return the object in payloads; its arrays are writable."""
    return pickle.loads(payloads[0], buffers=[bytearray(p) for p in payloads[1:]])
