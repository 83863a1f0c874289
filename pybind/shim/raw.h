/* The raw calls: what the classes in gormapy.MPI that are written in Python call. They take handles and
   addresses as integers, objects only for what must stay alive, and return a handle, a request or nothing;
   a code that is not 0 is raised. Each file raw_NOUN.c has those of one noun and a table of them, which
   module.c adds to the module. Arguments have been checked in Python where that makes a better sentence,
   and in gocore/mpi, which has the meaning of each call, in any case.

   A call is made with the GIL held, and gives it up while it waits or copies. Not for programs. */
#ifndef RAW_H
#define RAW_H

#include "trace.h"

#define ARGS PyObject *self, PyObject *const *args, Py_ssize_t n
#define F(name) {#name, (PyCFunction)(void *)raw_##name, METH_FASTCALL, NULL}

extern PyMethodDef raw_process_methods[], raw_request_methods[], raw_request_list_methods[], raw_message_methods[];
extern PyMethodDef raw_object_methods[], raw_datatype_methods[], raw_group_methods[];

PyObject *raw_put_notify(ARGS); /* hot_win.c */
extern PyMethodDef raw_coll_methods[], raw_neighbor_methods[], raw_comm_methods[], raw_win_methods[],
    raw_file_methods[], raw_memory_methods[], array_methods[], forking_methods[];

int ready_forking(void); /* forking.c */

/* raw.c: arguments. Each returns -1 or NULL with an exception where they are not what they should be. */

/* Converts arguments to integers. name is the call's, followed by its arguments' where programs give them
   ("probe communicator source tag"): an exception then says which one is no integer. */
int integers(const char *name, PyObject *const *args, Py_ssize_t n, Py_ssize_t want, int64_t *out);

/* A sequence of integers as an array; free with PyMem_Free. */
int64_t *integer_array(PyObject *seq, Py_ssize_t *count);

/* The status to fill in; *st is NULL for None. */
int status_arg(PyObject *o, gm_status **st);

StartedObject *started_arg(PyObject *o);

/* What a call returns: a handle, or an exception for the code. */
PyObject *handle_or(int code, int64_t h);

/* The object for a request that keeps holder until it is finished or adopted, or an exception for the code. */
PyObject *started_or(int code, int64_t req, PyObject *holder);

/* Waits for a request, also after signals. RAISED leaves the request as it is, for its owner to wait for
   again or to free. */
int wait_request(int64_t req, gm_status *st);

/* Waits for a request that makes an object and returns the object's handle. code is that of the call that has begun it.
   If a signal handler raises, the request is given up. */
PyObject *made_or(int code, int64_t req);

/* What a call that makes or frees an object returns: the object's handle, or an exception for the code. The call may have
   set a request that is to be waited for, when it was interrupted. If a signal handler raises, it is given up. */
PyObject *made_by(int code, int64_t made, int64_t req);

/* Defines raw_NAME, which takes count integers as a[]. expr makes or frees an object, and sets made to its handle, or req.
   raw_NAME waits for that and returns the object's handle. The caller can't begin and wait in two steps: if an exception came
   between them, the request's later rounds would be out of step with the collectives that the program calls next. */
#define DEFINE_MAKE(name, count, arguments, note, expr)                    \
  static PyObject *raw_##name(ARGS) {                                      \
    int64_t a[count], made = 0, req = 0;                                   \
    int code;                                                              \
    if (integers(#name " " arguments, args, n, count, a) < 0) return NULL; \
    note;                                                                  \
    WITHOUT_GIL(code = expr);                                              \
    return made_by(code, made, req);                                       \
  }

/* Defines raw_NAME, which takes count integers as a[]. expr begins an operation, and sets pending if it is interrupted;
   raw_NAME waits until the operation is complete. */
#define DEFINE_WAIT(name, count, arguments, note, expr)                    \
  static PyObject *raw_##name(ARGS) {                                      \
    int64_t a[count], pending = 0;                                         \
    int code;                                                              \
    gm_status own;                                                         \
    if (integers(#name " " arguments, args, n, count, a) < 0) return NULL; \
    note;                                                                  \
    BLOCKING(code, pending, &own, expr);                                   \
    return none_or(code);                                                  \
  }

#endif
