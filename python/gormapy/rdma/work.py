"""Work requests: the methods that queue pairs and batches have in common."""

import struct

from .buffer import locate
from .constants import COMPARE_SWAP, FETCH_ADD, OPERATIONS, READ, SEND, SEND_IMM, WRITE, WRITE_IMM
from .errors import integer, mismatch, refusal
from .region import MemoryRegion, RemoteMemory

SEND_WR = struct.Struct("<qqQqqqQQqQqQQq")  # rdma.WR
RECV_WR = struct.Struct("<Qqqq")  # rdma.RR
_SIGNALED, _INLINE, _FENCE = 1, 2, 4
_WORD = 2**64 - 1
_NOWHERE = RemoteMemory(0, 0, 0)


class Posting:
    """The operations that can be posted. All methods return at once; if one raises `Error`, nothing was posted."""

    def post_write(self, local, remote, **options):
        """Write local memory to memory of the peer, whose program takes no part in it.

        `local` is a `MemoryRegion`, `remote` a `RemoteMemory` of the peer (or a `MemoryRegion`, of this process).
        `local_offset`, `remote_offset` and `length` are in bytes; `length` is by default all of the local region
        from its offset on. `wr_id`, from 0 to 2**64 - 1, comes back in the completion; a request with
        ``signaled=False`` has none unless it fails. With ``inline=True`` the data is copied at once and may be that of
        any object; at most the queue pair's max_inline bytes. With ``fence=True`` a request waits until earlier reads
        and atomics are done.

        It returns at once. Local memory must not be changed until the request has completed, unless it is inline. Its
        completion does not mean that the bytes are in the peer's memory. A later read returns them; a receive that
        completes at the peer for a later request means that they are there.

        Errors: `Error` for bytes outside of a region, a queue that is full, or a queue pair in another state, and
        nothing was posted; `TypeMismatch` for another object. What fails later is the `Error` of the completion.
        """
        self._send(WRITE, local, remote, **options)

    def post_write_imm(self, local, remote, imm_data, **options):
        """Write to the peer's memory, then complete a receive there, with 32 bits of immediate data.

        The rest is as in `post_write`; without `local` and `remote` only the immediate data are sent.
        """
        self._send(WRITE_IMM, local, remote, imm_data=imm_data, **options)

    def post_read(self, local, remote, **options):
        """Read memory of the peer into local memory.

        Local memory has the bytes when the request has completed, and must not be touched before. The arguments are
        those of `post_write`, but for `inline`.
        """
        self._send(READ, local, remote, **options)

    def post_send(self, local, *, imm_data=None, **options):
        """Send a message to the next receive that the peer has posted, with immediate data if given.

        `local` may be None: a message without data. The rest is as in `post_write`.
        """
        if imm_data is None:
            self._send(SEND, local, None, **options)
        else:
            self._send(SEND_IMM, local, None, imm_data=imm_data, **options)

    def post_fetch_add(self, local, remote, add, **options):
        """Add to 8 aligned bytes of the peer's memory, and fetch their previous value into local memory.

        They are an integer in the byte order of the machine; sums wrap around at 2**64. `add` may be negative. Local
        memory has the value when the request has completed; the rest is as in `post_read`.
        """
        add = integer("post_fetch_add", "add", add, -(2**63), _WORD) & _WORD
        self._send(FETCH_ADD, local, remote, operand=add, **{"length": 8, **options})

    def post_compare_swap(self, local, remote, compare, swap, **options):
        """Replace 8 aligned bytes of the peer's memory by `swap` if equal to `compare`, and fetch their old value.

        Local memory has the old value when the request has completed; the rest is as in `post_read`.
        """
        compare = integer("post_compare_swap", "compare", compare, -(2**63), _WORD) & _WORD
        swap = integer("post_compare_swap", "swap", swap, -(2**63), _WORD) & _WORD
        self._send(COMPARE_SWAP, local, remote, compare=compare, operand=swap, **{"length": 8, **options})

    def post_recv(self, local=None, *, local_offset=0, length=None, wr_id=0):
        """Post memory for a message of the peer, or no memory, for one without data or a write with immediate data.

        `local` is a `MemoryRegion`, of which `length` bytes from `local_offset` on are used, by default all from there
        on. They must not be touched until the receive has completed, with this `wr_id`. Messages take receives in the
        order in which these were posted.
        """
        region = n = 0
        if local is not None:
            if not isinstance(local, MemoryRegion):
                raise mismatch("post_recv", "local", "a MemoryRegion", local)
            region = local._handle or -1
            n = local.length - local_offset if length is None else integer("post_recv", "length", length)
            local_offset = integer("post_recv", "local_offset", local_offset)
        elif length:
            raise mismatch("post_recv", "local", "a MemoryRegion", local)
        wr_id = integer("post_recv", "wr_id", wr_id, 0, _WORD)
        self._post_recv(RECV_WR.pack(wr_id, region, local_offset, n), local)

    def _send(
        self, op, local, remote, *, local_offset=0, remote_offset=0, length=None, wr_id=0, signaled=True, inline=False,
        fence=False, imm_data=0, compare=0, operand=0,
    ):  # fmt: skip
        name = OPERATIONS[op]
        flags = (_SIGNALED if signaled else 0) | (_INLINE if inline else 0) | (_FENCE if fence else 0)
        if isinstance(local, MemoryRegion):
            region, offset, available = local._handle or -1, local_offset, local.length
        elif inline and local is not None:
            address, available, local = locate(local, False, f"post_{name}", "local")
            region = 0
            if length is None:
                length = available - local_offset
            if local_offset < 0 or length < 0 or local_offset + length > available:
                raise outside(f"post_{name}", local_offset, length, available)
            offset = address + local_offset
        elif local is None and op in (SEND, SEND_IMM, WRITE_IMM) and not length:
            region = offset = available = 0  # a message without data
        else:
            raise mismatch(f"post_{name}", "local", "a MemoryRegion (or any buffer with inline=True)", local)
        if length is None:
            length = available - local_offset
        if isinstance(remote, MemoryRegion):
            remote = remote.remote
        elif remote is None and (op in (SEND, SEND_IMM) or (op == WRITE_IMM and not length)):
            remote = _NOWHERE
        elif not isinstance(remote, RemoteMemory):
            raise mismatch(f"post_{name}", "remote", "a RemoteMemory", remote)
        try:
            packed = SEND_WR.pack(
                op, flags, wr_id, region, offset, length, remote.addr, remote.length, remote_offset, remote.rkey,
                imm_data, compare, operand, 0,
            )  # fmt: skip
        except struct.error:
            raise self._unpackable(name, wr_id, local_offset, length, remote_offset, imm_data) from None
        self._post_send(packed, local)

    @staticmethod
    def _unpackable(name, wr_id, local_offset, length, remote_offset, imm_data):
        integer(f"post_{name}", "wr_id", wr_id, 0, _WORD)
        integer(f"post_{name}", "imm_data", imm_data, 0, 2**32 - 1)
        numbers = (("local_offset", local_offset), ("length", length), ("remote_offset", remote_offset))
        for what, value in numbers:
            integer(f"post_{name}", what, value)
        return mismatch(f"post_{name}", "every number", "an integer of 64 bits", numbers)

    def _post_send(self, packed, local):
        raise NotImplementedError

    def _post_recv(self, packed, local):
        raise NotImplementedError


def outside(operation, offset, length, available):
    """Return the exception for bytes that are not in local memory."""
    text = f"{length} bytes at offset {offset} are outside of local memory of {available} bytes"
    sizes = {"local_offset": offset, "length": length, "region": available}
    return refusal("IBV_WC_LOC_PROT_ERR", operation, text, sizes)
