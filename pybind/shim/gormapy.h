/* What the C and the Go side of the extension share. */
#ifndef GORMAPY_H
#define GORMAPY_H

#include <stdint.h>

/* mpi.Status */
typedef struct {
  int32_t source, tag, error, cancelled;
  int64_t bytes;
} gm_status;

/* One side of a collective with a count for each rank: mpi.Side. */
typedef struct {
  int64_t addr, type;
  int64_t *counts, *displs;
  int64_t ncounts, ndispls;
} gm_side;

/* rma.Target and rma.Desc */
typedef struct {
  void *base;
  int64_t bytes, unit;
  uint32_t open, flags;
  uint64_t remote;
  int64_t pid;
  uint32_t *ended; /* not 0 once pid may be another process's */
} gm_target;

typedef struct {
  int64_t handle;
  int32_t size;
  uint32_t flags, open, pad;
  gm_target target[];
} gm_win;

enum { GM_DESC_AT_ONCE = 1 };
enum { GM_TARGET_LOCKED = 1, GM_TARGET_STARTED = 2 }; /* open */
enum { GM_TARGET_ATOMIC = 1, GM_TARGET_COPY = 2 };    /* flags */
enum { GM_OPEN_FENCE = 1, GM_OPEN_LOCK_ALL = 2 };
enum { GM_INTERRUPTED = -1 };
enum { GM_ERR_BUFFER = 1, GM_ERR_INTERN = 17 }; /* errs.Buffer, errs.Intern: the low byte of a code is the class */

/* Kinds, numbered as in package mpi. */
enum { GM_SEND, GM_SSEND, GM_RECV, GM_BSEND, GM_RSEND };
enum { GM_PUT, GM_GET, GM_ACC, GM_GET_ACC, GM_FETCH_OP, GM_CAS };
enum {
  GM_BARRIER, GM_BCAST, GM_GATHER, GM_SCATTER, GM_ALLGATHER, GM_ALLTOALL, GM_REDUCE, GM_ALLREDUCE,
  GM_REDUCE_SCATTER_BLOCK, GM_SCAN, GM_EXSCAN, GM_GATHERV, GM_SCATTERV, GM_ALLGATHERV, GM_ALLTOALLV, GM_IBARRIER
};

#endif
