/* Recording calls: see gocore/trace/doc.go, which has the protocol. agree.go compares layouts and numbers with Go's.
   Everything is called with the GIL held. */
#ifndef TRACE_H
#define TRACE_H

#include "shim.h"

/* trace.Record */
typedef struct {
  uint32_t state;
  uint16_t kind, name;
  uint64_t begin, end;
  uint32_t thread;
  int32_t peer;
  int64_t object, bytes, disp;
  int32_t tag, op;
} trace_record;

/* trace.Head */
typedef struct {
  uint64_t magic;
  uint32_t version, clock;
  uint64_t capacity;
  int32_t rank, size;
  uint32_t pid, name_len;
  uint64_t tick0, nano0, tick1, nano1, pad0[7];
  uint64_t next;
  uint32_t threads, first;
  uint64_t pad1[6];
} trace_head;

/* trace_record.kind. From TRACE_DEFINITIONS on, records say what handles stand for. */
enum { TRACE_CALL = 1, TRACE_CALL_COMM, TRACE_CALL_WIN, TRACE_DEFINITIONS = 7 };
enum { TRACE_STATE_OPEN = 1, TRACE_STATE_DONE = 2 }; /* trace_record.state */
enum { TRACE_CLOCK_TICKS = 1 };                      /* trace_head.clock */
enum { TRACE_RECORDS_AT = 64 << 10 };                /* bytes from the head to the first record */
enum { TRACE_NO_PEER = -3 };
enum { TRACE_FINALIZE = CALL_COUNT }; /* the name after those of the hot methods */

/* Whether calls are recorded. It changes with the GIL held. */
extern int gm_tracing __attribute__((visibility("hidden")));
#define TRACING __builtin_expect(gm_tracing, 0)

void trace_open(int name);
void trace_close(int ok);

/* What the call in progress is about; does nothing outside of one. Bytes add up. */
void trace_note(int kind, int64_t object, int64_t peer, int64_t tag, int64_t bytes);
void trace_note_bytes(int64_t bytes);
void trace_note_rma(int64_t win, int64_t rank, int64_t disp, int64_t bytes, int64_t span, int op);
void trace_note_access(const gm_access *a);
/* A receive has ended: where it is really from. Its bytes are added, or take the place of those noted before. */
void trace_note_status(const gm_status *st, int add);

/* The bytes of count items of a datatype. */
int64_t trace_bytes(int64_t type, int64_t count);

#define NOTE_COMM(comm, peer, tag, bytes)                             \
  do {                                                                \
    if (TRACING) trace_note(TRACE_CALL_COMM, comm, peer, tag, bytes); \
  } while (0)
#define NOTE_WIN(win, peer, tag)                                \
  do {                                                          \
    if (TRACING) trace_note(TRACE_CALL_WIN, win, peer, tag, 0); \
  } while (0)

/* The hot method f, recorded under the name of what it falls back to. */
#define TRACED(f, which)                                                                                \
  static PyObject *traced_##f(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames) { \
    if (TRACING) return trace_hot(f, which, self, args, n, kwnames);                                    \
    return f(self, args, n, kwnames);                                                                   \
  }

typedef PyObject *(*hot_method)(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);
PyObject *trace_hot(hot_method f, int name, PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames);

int ready_trace(PyObject *module);
PyObject *trace_switch(PyObject *self, PyObject *on);
PyObject *trace_part(PyObject *self, PyObject *args);
PyObject *trace_mark(PyObject *self, PyObject *noargs);

#endif
