/* The Python side of the extension: types, helpers. */
#ifndef SHIM_H
#define SHIM_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include "gormapy.h"

#define IN_PLACE (-1)

/* Bits of RequestObject.kind: see request.py. */
#define REQUEST_PERSISTENT 2
#define REQUEST_STEPPED 4

/* What moves more bytes than this is called without the GIL. */
#define LONG_COPY (64 << 10)

/* Base types of the classes in gormapy.MPI. */
typedef struct {
  PyObject_HEAD
  int64_t h;
} CommObject;

typedef struct {
  PyObject_HEAD
  int64_t h;
  gm_win *desc; /* of the handle when it was last looked up */
} WinObject;

typedef struct {
  PyObject_HEAD
  int64_t h;
  PyObject *buf; /* what must live until the request completes */
  int kind;
} RequestObject;

typedef struct {
  PyObject_HEAD
  int64_t h, size, extent;
  int dense;
} DatatypeObject;

typedef struct {
  PyObject_HEAD
  gm_status st;
} StatusObject;

/* Keeps a buffer acquired. */
typedef struct {
  PyObject_HEAD
  Py_buffer view;
} HolderObject;

/* What a call has started and nobody owns yet. Python may raise KeyboardInterrupt
   between any two calls: then this object goes. A receive is withdrawn, anything else
   goes on, and the memory stays until that is over. */
typedef struct {
  PyObject_HEAD
  int64_t h;
  PyObject *buf;
} StartedObject;

extern PyTypeObject StartedType, CommType, WinType, RequestType, DatatypeType, StatusType, HolderType, MemoryType, WordType;
int ready_types(PyObject *module);

/* Set in a forked child, where nothing of MPI may be used. */
extern int gm_forked;
int check_process(void);

/* Raises MPI.Exception for a code; returns NULL. */
PyObject *raise_code(int code);
extern PyObject *exception_class, *request_class, *prequest_class, *in_place;

/* A request is done with, with a code: one that is not persistent has no handle and no
   memory any more. Only if its handle is still h. */
void settle(RequestObject *r, int64_t h, int code);

/* keep.c: memory of an operation that nobody waits for any more, released when the request h
   (0: none) is over. keep_until_over takes the reference, keep_view the buffer. */
void keep_until_over(int64_t h, PyObject *memory);
void keep_view(int64_t h, Py_buffer *view);
void keep_sweep(void);
Py_ssize_t kept_count(void);

/* Goes on with a call that was interrupted: looks at signals (with the GIL),
   waits on (without). Returns the code, or -2 with a Python exception set: the
   operation has been given up, and its memory is to be kept by keep_.... */
int resume(int64_t pending, gm_status *st);

/* Runs CALL (an int expression that may set pending) without the GIL, resumes
   it as often as it is interrupted. */
#define BLOCKING(code, pending, st, CALL)                                      \
  do {                                                                         \
    Py_BEGIN_ALLOW_THREADS code = (CALL);                                      \
    Py_END_ALLOW_THREADS if (code == GM_INTERRUPTED) code = resume(pending, st); \
  } while (0)

/* guard.c: memmove to or from a program's memory. Returns 0, or 1 if the memory faulted,
   at guard_address(). */
int guarded_copy(void *to, const void *from, size_t n);
int64_t guard_address(void);
void guard_arm(int forget); /* has faults come to the guard first; forget: who came after Go is no more */

/* The same, without the GIL if it takes long. */
int long_copy(void *to, const void *from, Py_ssize_t n);

/* What a call returns: None, an exception for the code, or NULL if one is set. */
PyObject *none_or(int code);

/* A contiguous buffer of a dense datatype, as the hot calls take it. */
typedef struct {
  Py_buffer view;
  int64_t type, count, size; /* handle, items, bytes of an item */
} spec;

/* Reads one of the common buffer specifications. Returns 0, or -1 if the object is
   anything else, which the Python parser sees to (call_slow), or with an exception
   that a signal handler has raised meanwhile. */
int parse_spec(PyObject *o, int writable, spec *s);

/* raw.c's watch(from, callable): what is called with objects of from bytes or more
 * that are about to be communicated, by watch. */
PyObject *raw_watch(PyObject *self, PyObject *const *args, Py_ssize_t n);
int watch(PyObject *o, Py_ssize_t n); /* -1 with an exception, such as a signal handler's */
int parse_int(PyObject *o, int64_t *out);

/* word.c */
PyObject *raw_win_address(PyObject *self, PyObject *const *args, Py_ssize_t n);

/* Matches arguments with names, -1 if they do not fit. */
int match_args(const char *const *names, int required, PyObject *const *args, Py_ssize_t n, PyObject *kwnames, PyObject **out);

/* The Python implementations that hot methods fall back to. */
PyObject *call_slow(int which, PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames);

/* Between the signature of a method and its docstring, as Python has it. */
#define SIGNATURE_END "\n--\n\n"
extern PyMethodDef raw_methods[], win_methods[], comm_methods[], request_methods[];
extern const char *const hot_names[];
enum {
  SLOW_PUT, SLOW_GET, SLOW_ACCUMULATE, SLOW_FETCH_AND_OP, SLOW_COMPARE_AND_SWAP, SLOW_FLUSH, SLOW_FLUSH_LOCAL,
  SLOW_FLUSH_ALL, SLOW_FLUSH_LOCAL_ALL, SLOW_LOCK, SLOW_UNLOCK, SLOW_FENCE, SLOW_SEND, SLOW_RECV, SLOW_ISEND,
  SLOW_IRECV, SLOW_BARRIER, SLOW_WAIT, SLOW_TEST, SLOW_START, SLOW_WAITALL, SLOW_STARTALL, SLOW_ALLREDUCE, SLOW_BCAST,
  SLOW_COUNT
};

#endif
