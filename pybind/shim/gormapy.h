/* What the C and the Go side of the extension share: layouts of memory that both read, and numbers that both know.
   agree.go compares each with Go's when the extension is built; a difference does not compile. Nothing of Python's
   is here, since cgo reads it. */
#ifndef GORMAPY_H
#define GORMAPY_H

#include <stdint.h>

/* mpi.Status */
typedef struct {
  int32_t source, tag, error, cancelled;
  int64_t bytes;
} gm_status;

/* One side of a collective with a count for each rank. exports.go makes a mpi.Side of it. */
typedef struct {
  int64_t addr, type;
  int64_t *counts, *displs;
  int64_t ncounts, ndispls;
} gm_side;

/* mpi.CommShape: size 0 of an intercommunicator; the sizes of heads of objects. */
typedef struct {
  int32_t size, rank, head, part;
} gm_comm_shape;

/* mpi.Heads: the heads of a collective of objects. */
typedef struct {
  int64_t comm, send, recv, sent, received, bytes, root, generation;
  uint32_t number;
  int32_t kind, more, reduce;
} gm_heads;

/* A head: the size of a pickle, a note, and the pickle. */
enum { GM_HEAD_NOTE = 8, GM_HEAD_DATA = 16 };
enum { GM_PLAIN_BIT = 32, GM_REDUCE_BIT };

/* mpi.TypeShape */
typedef struct {
  int64_t size, extent, lb, true_lb, true_extent, one_run, word;
} gm_type_shape;

/* mpi.MakeDup and so on */
enum {
  GM_TYPE_DUP,
  GM_TYPE_CONTIGUOUS,
  GM_TYPE_VECTOR,
  GM_TYPE_HVECTOR,
  GM_TYPE_RESIZED,
  GM_TYPE_INDEXED,
  GM_TYPE_HINDEXED,
  GM_TYPE_INDEXED_BLOCK,
  GM_TYPE_HINDEXED_BLOCK,
  GM_TYPE_SUBARRAY,
  GM_TYPE_STRUCT
};

/* mpi.Operand: count elements of the program's memory. */
typedef struct {
  int64_t addr, count, datatype;
} gm_operand;

/* mpi.TargetSpec: count elements of the target's part of a window, at a displacement in its units. */
typedef struct {
  int64_t disp, count, datatype;
} gm_target_spec;

/* mpi.Access: a one-sided operation. Window, types and operation are handles. */
typedef struct {
  int64_t kind, win;
  gm_operand origin, result;
  int64_t rank;
  gm_target_spec target;
  int64_t op;
} gm_access;

/* rma.NotifyBox: the counters of a rank's notifications, and how many of its waits for them are under way. */
enum { GM_NOTIFY_SLOTS = 256 }; /* rma.NotifySlots */
typedef struct {
  uint32_t counters[GM_NOTIFY_SLOTS];
  uint32_t waiting;
  uint32_t pad[15];
} gm_notify_box;

/* fabric.Run: memory of another process. The kernel's struct iovec is the same. */
typedef struct {
  uint64_t at;
  int64_t bytes;
} gm_run;

/* rma.Bundle: short puts that are to be written at once. Its protocol is in gocore/rma/bundle.go. */
enum { GM_BUNDLE_RUNS = 64, GM_BUNDLE_BYTES = 4096, GM_BUNDLED_PUT = 256 };
typedef struct {
  uint32_t lock;
  uint32_t used;    /* runs */
  uint32_t bytes;   /* of all runs, one after the other in data */
  uint32_t written; /* how many of them the target has already */
  uint32_t number;  /* what gm_desc.begun was when the first run came */
  uint32_t pad;
  gm_run runs[GM_BUNDLE_RUNS];
  uint8_t data[GM_BUNDLE_BYTES];
} gm_bundle;

/* rma.Target: what the hot calls need of one rank of a window. */
typedef struct {
  void *base; /* NULL: not mapped here */
  int64_t bytes, unit;
  uint32_t open, flags;
  uint64_t remote; /* of a target that the kernel copies to and from: where its part lies in its process */
  int64_t pid;
  uint32_t *ended;       /* not 0 once pid may be another process's */
  gm_notify_box *notify; /* NULL: on another node */
  gm_bundle *bundle;     /* NULL: there has been none */
  uint32_t turn, pad;    /* what gm_desc.turn was at the last short put that was written at once */
} gm_target;

/* rma.Desc, which the targets follow. Go writes it when the window is made and when an epoch changes. Its memory is
   never unmapped, only used again: who keeps a pointer compares the handle. */
typedef struct {
  int64_t handle; /* 0 once freed */
  int32_t size;
  uint32_t flags, open;
  uint32_t turn;    /* changes with every call that completes operations, and with every call that enters Go */
  uint32_t failed;  /* not 0: the next call that completes operations has an error to return */
  uint32_t bundles; /* how many are not empty */
  uint32_t begun;   /* how many have been begun in all */
  uint32_t watched; /* not 0: Go looks for bundles that nothing completes */
  uint32_t pad;
  gm_target target[];
} gm_desc;

enum { GM_DESC_COMPLETE_ON_RETURN = 1 };                                   /* gm_desc.flags, combined by or */
enum { GM_OPEN_FENCE = 1, GM_OPEN_LOCK_ALL = 2 };                          /* gm_desc.open, one of them */
enum { GM_TARGET_LOCKED = 1, GM_TARGET_STARTED = 2 };                      /* gm_target.open, combined by or */
enum { GM_TARGET_ATOMIC = 1, GM_TARGET_COPY = 2, GM_TARGET_MESSAGES = 4 }; /* gm_target.flags, combined by or */
enum { GM_SHORT_PUT = 16384 };                                             /* bytes; see rma.TargetMessages */
enum { GM_SHORT_UPDATE = 256 };                                            /* bytes; see rma.HotUpdate */

/* How many times this process has forked; see rma.Forks. */
extern uint32_t gm_forks;

/* arena.ChunkCopy: what a forked child has to know of a chunk of arrays. */
enum { GM_MAX_CHUNKS = 4096 }; /* arena.MaxChunks */
typedef struct {
  uint64_t addr, bytes;
  uint64_t copy; /* address of a private copy; 0: none */
  int64_t fd;    /* a file with a copy; -1: none */
  uint64_t live; /* how many arrays it has */
} gm_chunk;

/* A code is 0, or its low byte is the class of an error and the rest finds its sentence. */
enum { GM_INTERRUPTED = -1 };
enum {
  GM_ERR_BUFFER = 1,
  GM_ERR_RANK = 6,
  GM_ERR_REQUEST = 7,
  GM_ERR_OTHER = 16,
  GM_ERR_INTERN = 17,
  GM_ERR_PENDING = 18,
  GM_ERR_PROC_FAILED_PENDING = 62
};
/* Of gm_hot_acc and gm_hot_cas, which return a code as well: all codes with a sentence are larger. */
enum { GM_DONE = 1 };

/* What stands for a rank, a tag, an address, an index. */
enum { GM_ANY_SOURCE = -1, GM_ANY_TAG = -1, GM_PROC_NULL = -2, GM_IN_PLACE = -1, GM_UNDEFINED = -32766 };

/* The request of a send that was complete when its call returned. */
enum { GM_REQUEST_SENT = 1 };

/* The operations and locks that C knows. */
enum { GM_OP_SUM = 3, GM_OP_NO_OP = 14 };
enum { GM_LOCK_EXCLUSIVE = 1 };

/* mpiio.Kind: bits of the kind of a read or write. */
enum { GM_FILE_WRITE = 1, GM_FILE_ALL = 2, GM_FILE_OWN = 4, GM_FILE_SHARED = 8 };
enum { GM_SEEK_SET = 600 };

/* p2p.EagerLimit: messages up to it are sent at once as a rule. */
enum { GM_EAGER_LIMIT = 16 << 10 };

/* Kinds of calls. Python has them from here, see module.c. */
enum { GM_SEND, GM_SSEND, GM_RECV, GM_BSEND, GM_RSEND };
enum { GM_PUT, GM_GET, GM_ACC, GM_GET_ACC, GM_FETCH_OP };
enum {
  GM_BARRIER,
  GM_BCAST,
  GM_GATHER,
  GM_SCATTER,
  GM_ALLGATHER,
  GM_ALLTOALL,
  GM_REDUCE,
  GM_ALLREDUCE,
  GM_REDUCE_SCATTER_BLOCK,
  GM_SCAN,
  GM_EXSCAN,
  GM_GATHERV,
  GM_SCATTERV,
  GM_ALLGATHERV,
  GM_ALLTOALLV,
  GM_IBARRIER,
  GM_ALLTOALLW,
  GM_NEIGHBOR_ALLGATHER,
  GM_NEIGHBOR_ALLTOALL
};

#endif
