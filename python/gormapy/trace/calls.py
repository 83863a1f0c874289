"""The calls that are recorded, and the category of each.

A name is shown as programs write it: methods of communicators without their class, others with it.
"""

MESSAGE, COLLECTIVE, ONE_SIDED, EPOCH, WAIT, OBJECT, FILE, OTHER = CATEGORIES = (
    "message",
    "collective",
    "one-sided",
    "epoch",
    "wait",
    "object",
    "file",
    "other",
)

_SENDS = (
    "Send Ssend Bsend Rsend Recv Sendrecv Sendrecv_replace Isend Issend Ibsend Irsend Irecv Isendrecv Isendrecv_replace"
)
_PREPARED = "Send_init Ssend_init Bsend_init Rsend_init Recv_init"
_PROBES = "Probe Iprobe Mprobe Improbe"
_OBJECTS = "send ssend bsend recv sendrecv isend issend ibsend irecv isendrecv probe iprobe mprobe improbe"
_DATA = (
    "Bcast Gather Gatherv Scatter Scatterv Allgather Allgatherv Alltoall Alltoallv Alltoallw Reduce Allreduce "
    "Reduce_scatter_block Reduce_scatter Scan Exscan Neighbor_allgather Neighbor_allgatherv Neighbor_alltoall "
    "Neighbor_alltoallv Neighbor_alltoallw"
)
_PICKLED = (
    "barrier bcast gather scatter allgather alltoall reduce allreduce scan exscan neighbor_allgather neighbor_alltoall"
)
_COLLECTIVES = ["Barrier", *_DATA.split()]
_OPERATIONS = "Put Get Accumulate Get_accumulate Fetch_and_op Compare_and_swap Rput Rget Raccumulate Rget_accumulate"
_WAITS = "Wait Test Waitany Testany Waitall Testall Waitsome Testsome"

# class of gormapy.MPI -> method -> category
CALLS = {
    "Comm": {
        **dict.fromkeys([*_SENDS.split(), *_PREPARED.split(), *_PROBES.split(), *_OBJECTS.split()], MESSAGE),
        **dict.fromkeys(_COLLECTIVES, COLLECTIVE),
        **dict.fromkeys([f"I{name.lower()}" for name in _COLLECTIVES], COLLECTIVE),
        **dict.fromkeys([f"{name}_init" for name in _COLLECTIVES], COLLECTIVE),
        **dict.fromkeys(_PICKLED.split(), COLLECTIVE),
        **dict.fromkeys(
            [
                "Clone",
                "Dup",
                "Dup_with_info",
                "Idup",
                "Idup_with_info",
                "Create",
                "Create_group",
                "Create_intercomm",
                "Create_from_groups",
                "Merge",
                "Split",
                "Split_type",
                "Free",
                "Disconnect",
                "Create_cart",
                "Create_graph",
                "Create_dist_graph",
                "Create_dist_graph_adjacent",
                "Sub",
            ],
            OBJECT,
        ),
    },
    "Win": {
        **dict.fromkeys(_OPERATIONS.split(), ONE_SIDED),
        **dict.fromkeys(
            [
                "Fence",
                "Lock",
                "Unlock",
                "Lock_all",
                "Unlock_all",
                "Flush",
                "Flush_all",
                "Flush_local",
                "Flush_local_all",
                "Sync",
                "Post",
                "Start",
                "Complete",
                "Wait",
                "Test",
            ],
            EPOCH,
        ),
        **dict.fromkeys(
            ["Create", "Allocate", "Allocate_shared", "Create_dynamic", "Attach", "Detach", "Free"], OBJECT
        ),
    },
    "Request": {
        **dict.fromkeys(_WAITS.split(), WAIT),
        **dict.fromkeys(_WAITS.lower().split(), WAIT),
        "Cancel": WAIT,
        "Free": WAIT,
    },
    "Prequest": {"Start": MESSAGE, "Startall": MESSAGE},
    "Message": dict.fromkeys(["Recv", "Irecv", "recv", "irecv", "Probe", "Iprobe", "probe", "iprobe"], MESSAGE),
    "File": {
        **dict.fromkeys(
            ["Open", "Close", "Delete", "Set_size", "Preallocate", "Get_size", "Set_view", "Seek", "Sync"], FILE
        ),
        **dict.fromkeys(
            [
                f"{verb}{suffix}"
                for verb in ("Read", "Write", "Iread", "Iwrite")
                for suffix in ("", "_at", "_all", "_at_all", "_shared", "_ordered")
            ],
            FILE,
        ),
    },
}


def shown(owner, name):
    """Return the name of a call as it is shown."""
    return name if owner == "Comm" else f"{owner}.{name}"


def category(owner, name):
    """Return the category of a call."""
    return CALLS.get(owner, {}).get(name, OTHER)
