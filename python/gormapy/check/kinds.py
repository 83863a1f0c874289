"""The numbers of events and classes, as gocore/check has them."""

(
    BEGIN,
    DEF_SITE,
    DEF_COMM,
    DEF_WIN,
    DEF_TYPE,
    DEF_SHARED,
    OP,
    OP_VALUE,
    OP_FAILED,
    SYNC,
    SENT,
    RECEIVED,
    COLL,
    REQ_DONE,
    RELEASE,
    ACQUIRE,
    ACCESS,
    MISUSE,
    END,
    MARK,
    EXEMPT,
    ATTACH,
    GONE,
    DONE,
    NOTIFY,
    NOTIFIED,
    RECEIVING,
    SYNC_SENT,
    LIMIT,
    THREAD_END,
    RESET,
    UNSEEN,
) = range(1, 33)

# of SYNC
(FENCE, LOCK, UNLOCK, LOCK_ALL, UNLOCK_ALL, FLUSH, FLUSH_LOCAL, POST, START, COMPLETE, WAIT, WIN_SYNC, FREE) = range(13)
BEGINS, ENDED, FAILED, REFUSED = range(4)  # REFUSED, of COLL: its arguments are wrong, and it has done nothing

# of OP
PUT, GET, ACCUMULATE, GET_ACCUMULATE, FETCH_AND_OP, COMPARE_AND_SWAP = range(6)

CLASSES = (
    "origin-reuse",
    "result-early",
    "accumulate-mix",
    "same-origin-order",
    "flush-missing",
    "target-conflict",
    "winsync-missing",
    "shared-access",
    "local-access",
    "epoch-missing",
    "epoch-open",
    "epoch-nested",
    "epoch-unopened",
    "wrong-assert",
    "bad-argument",
    "collective-mismatch",
    "request-lost",
    "memory-gone",
)
CLASS = {name: number for number, name in enumerate(CLASSES, 1)}
