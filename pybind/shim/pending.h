/* Operations on windows that are not complete, for mpiexec --check: see pending.c. */
#ifndef PENDING_H
#define PENDING_H

#include "raw.h"

extern PyMethodDef pending_methods[];

typedef struct pending pending;

/* Where the buffer of an operation lies. watched: loads and stores there are told of. */
typedef struct {
  uint64_t address, bytes;
  int watched;
} place;

/* The operations on a window; NULL if the window is not known, or the network is in between. */
pending *pending_on(int64_t win);

/* The rank in COMM_WORLD of a window's rank, -1 if it has none. */
int64_t pending_rank(const pending *p, int64_t rank);

/* Adds an operation that has one buffer, which holder keeps alive. Returns -1 with an exception if there is no memory. */
int pending_add(pending *p, int64_t number, int64_t target, PyObject *holder, place buffer);

/* Completes the operations on a target (-1: on all) that this thread has started. Returns how many places of theirs were not watched, which are
   in unwatched; -1 if there are more than most of them, or the value of one is to be told: then nothing has happened. */
int pending_flush(pending *p, int64_t target, place *unwatched, int most);

/* Has the buffers watched that were not, since nothing was: watch_renew. */
void pending_watch(void);

#endif
