/* object.c: what the calls that move Python objects share. Objects are pickled by MPI.pickle, and a pickle is anything
   with a buffer. Everything is called with the GIL held; NULL and -1 come with an exception. */
#ifndef OBJECT_H
#define OBJECT_H

#include "trace.h"

/* set_objects(MPI.pickle, table of the communicators' locks, what makes a lock, handle of BYTE, gormapy.rc) */
PyObject *set_objects(PyObject *self, PyObject *args);

/* What gormapy.rc asks that irecv has room for, in bytes; -1 if that can't be told here. */
int64_t least_room(void);

/* The handle of BYTE. */
extern int64_t object_type;

/* call is the name of the method of Comm, for errors. */
PyObject *pickled(PyObject *o, const char *call);
PyObject *unpickled(PyObject *pickle, const char *call);
PyObject *unpickled_list(PyObject *pickles, const char *call);

/* The shape of a communicator, which it remembers; NULL without an exception if there is none. */
const gm_comm_shape *shape_of(CommObject *comm);

/* Likewise; there is none of two groups. */
const gm_comm_shape *one_group(CommObject *comm);

/* The lock that a communicator has for a kind of call, which is taken. give_lock leaves an exception as it is. */
PyObject *take_lock(CommObject *comm, const char *kind);
void give_lock(PyObject *lock);

/* Blocking messages. The status of what is received is filled in. */
PyObject *send_pickle(int kind, int64_t comm, PyObject *pickle, int64_t dest, int64_t tag);
/* Of a message of so many bytes that has been taken out of matching. */
PyObject *receive_matched(int64_t message, int64_t bytes, gm_status *st);
PyObject *receive_pickle(int64_t comm, int64_t source, int64_t tag, gm_status *st);
PyObject *sendrecv_pickles(int64_t comm, PyObject *pickle, int64_t dest, int64_t send_tag, int64_t source, int64_t tag,
                           gm_status *st);

/* A collective of objects, in a communicator of one group. */
typedef struct {
  CommObject *comm;
  int kind; /* GM_BCAST, GM_GATHER, GM_SCATTER, GM_ALLGATHER or GM_ALLTOALL */
  int64_t root;
  PyObject *sending; /* what this rank sends: a pickle, a list of one for each rank, or NULL. None in place of a pickle
                        tells the others that there is none */
  int64_t note;      /* of this rank's heads */
  int reduce;      /* it is a part of allreduce: of GM_ALLGATHER rank 0 alone gets the long pickles, the others None */
  int same;        /* GM_ALLGATHER: set to whether all notes are that of this rank */
  int more;        /* set to whether there are long pickles here; in GM_ALLGATHER, at any rank */
  uint32_t number; /* set to the number of the call; of GM_BCAST in allreduce, that of the GM_ALLGATHER before */
  int64_t generation; /* likewise, the generation of its number */
} object_call;

/* The name of the method of Comm for a kind. */
const char *object_call_name(int kind);

/* Returns a list of the pickles that this rank receives. It holds the communicator's lock for the call, or its caller. */
PyObject *collect_locked(object_call *call);
PyObject *collect(object_call *call);

/* op: an Op, a function, or NULL for MPI.SUM */
PyObject *allreduce_object(CommObject *comm, PyObject *o, PyObject *op);

#endif
