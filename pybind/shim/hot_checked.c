/* Put, Get and flushes of a job that is checked (mpiexec --check), in their most usual case: one line of the program makes the same call
   again and again. The checker is told what gormapy/check/operations.py and epochs.py tell it. These have made a method that does all
   cases; the methods here stand before it, and call it for

     - the first call at a line, which gives the line its number (check_sites.c),
     - a datatype of which the checker has not been told (check_type),
     - buffers that are not on one page of an array, targets that are not mapped here, and whatever is unusual or wrong,
     - flushes of operations whose values are told, and those of programs with threads.

   So neither Python nor the kernel is in the way of a small put that is flushed. */
#include "check.h"
#include "hot_win.h"
#include "pending.h"
#include "watch.h"

#include "_cgo_export.h"

enum { TYPES = 256, UNWATCHED = 64 };
static unsigned char type_is_known[TYPES];
static int threads;
static PyObject *told[CALL_COUNT];

#define TELL(which) return tell(which, self, args, n, kwnames)
static PyObject *tell(int which, HOT) {
  Py_ssize_t named = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  PyObject *stack[16];
  if (PyErr_Occurred()) return NULL;
  if (n + named + 1 > 16) return PyErr_Format(PyExc_TypeError, "%s: too many arguments", hot_names[which]);
  stack[0] = self;
  for (Py_ssize_t i = 0; i < n + named; i++) stack[i + 1] = args[i];
  return call_vector(told[which], stack, (size_t)n + 1, kwnames);
}

static int is_known(int64_t type) { return type > 0 && type < TYPES && type_is_known[type]; }

static PyObject *transfer(HOT, int which) {
  static const char *const names[] = {"origin", "target_rank", "target", NULL};
  PyObject *a[3];
  spec s;
  int64_t rank, disp, at, target;
  int put = which == CALL_PUT;
  gm_desc *d = win_descriptor(self);
  pending *p = d ? pending_on(d->handle) : NULL;
  uint32_t line = p && !TRACING ? check_here(which) : 0;
  if (!line || match_args(names, 2, args, n, kwnames, a) < 0 || parse_int(a[1], &rank) < 0 ||
      (target = pending_rank(p, rank)) < 0 || (a[2] && a[2] != Py_None && !PyLong_Check(a[2])) ||
      parse_spec(a[0], !put, &s) < 0)
    TELL(which);
  place buffer = {(uint64_t)(uintptr_t)s.view.buf, (uint64_t)(s.count * s.size), !watch_is_stopped()};
  char *ours = buffer.watched ? watch_view(s.view.buf, buffer.bytes) : s.view.buf;
  const gm_target *t =
      target_disp(a[2], s.count * s.size, &disp) == 0 ? reach(d, rank, disp, s.count * s.size, &at) : NULL;
  if (!ours || !t || !t->base || !accessible(d, t) || !buffer.bytes || !is_known(s.type)) {
    PyBuffer_Release(&s.view);
    TELL(which);
  }
  int64_t number = check_next();
  /* events.Operation; nothing is fetched or compared, and there is no operation */
  int64_t words[18] = {d->handle, put ? 0 : 1, number, target, disp, s.type, s.count, (int64_t)buffer.address,
                       s.type,    s.count};
  check_write(CHECK_OP, line, words, 18);
  char *there = (char *)t->base + at;
  int faulted = program_copy(put ? there : ours, put ? ours : there, s.count * s.size);
  int failed = faulted || pending_add(p, number, target, s.view.obj, buffer) < 0;
  PyBuffer_Release(&s.view);
  watch_ends_call();
  if (!failed) Py_RETURN_NONE;
  check_write(CHECK_OP_FAILED, line, &number, 1);
  return faulted ? raise_code(gm_faulted(guard_address())) : NULL;
}

/* rank: of the window, -1 for all */
static PyObject *flush(gm_desc *d, pending *p, uint32_t line, int64_t rank, int kind, int *done) {
  place unwatched[UNWATCHED];
  int64_t target = rank < 0 ? -1 : pending_rank(p, rank);
  int n = rank < 0 || target >= 0 ? pending_flush(p, target, unwatched, UNWATCHED) : -1;
  *done = n >= 0;
  if (n < 0) return NULL;
  int64_t words[] = {d->handle, kind, 1, target, 0};
  check_write(CHECK_SYNC, line, words, 5);
  for (int i = 0; i < n; i++) {
    int64_t gone[] = {(int64_t)unwatched[i].address, (int64_t)unwatched[i].bytes, 1};
    check_write(CHECK_GONE, 0, gone, 3);
  }
  Py_RETURN_NONE;
}

enum { SYNC_FLUSH = 5, SYNC_FLUSH_LOCAL = 6 }; /* events.SyncKind */

static PyObject *flush_one(HOT, int which, int kind) {
  static const char *const names[] = {"rank", NULL};
  PyObject *a[1];
  int64_t rank;
  int done = 0;
  gm_desc *d = win_descriptor(self);
  pending *p = d ? pending_on(d->handle) : NULL;
  uint32_t line = p && !TRACING && !threads ? check_here(which) : 0;
  if (!line || match_args(names, 1, args, n, kwnames, a) < 0 || parse_int(a[0], &rank) < 0 || rank < 0 ||
      !flushed_at_once(d, rank))
    TELL(which);
  PyObject *none = flush(d, p, line, rank, kind, &done);
  if (!done) TELL(which);
  return none;
}

static PyObject *flush_all(HOT, int which, int kind) {
  int done = 0;
  gm_desc *d = win_descriptor(self);
  pending *p = d ? pending_on(d->handle) : NULL;
  uint32_t line = p && !TRACING && !threads && !n && !kwnames ? check_here(which) : 0;
  if (!line || !flushed_at_once(d, -1)) TELL(which);
  PyObject *none = flush(d, p, line, -1, kind, &done);
  if (!done) TELL(which);
  return none;
}

static PyObject *checked_put(HOT) { return transfer(self, args, n, kwnames, CALL_PUT); }
static PyObject *checked_get(HOT) { return transfer(self, args, n, kwnames, CALL_GET); }
static PyObject *checked_flush(HOT) { return flush_one(self, args, n, kwnames, CALL_FLUSH, SYNC_FLUSH); }
static PyObject *checked_flush_local(HOT) {
  return flush_one(self, args, n, kwnames, CALL_FLUSH_LOCAL, SYNC_FLUSH_LOCAL);
}
static PyObject *checked_flush_all(HOT) { return flush_all(self, args, n, kwnames, CALL_FLUSH_ALL, SYNC_FLUSH); }
static PyObject *checked_flush_local_all(HOT) {
  return flush_all(self, args, n, kwnames, CALL_FLUSH_LOCAL_ALL, SYNC_FLUSH_LOCAL);
}

#define CHECKED(name, f) {name, (PyCFunction)(void *)f, METH_FASTCALL | METH_KEYWORDS, NULL}
static PyMethodDef methods[] = {
    CHECKED("Put", checked_put),
    CHECKED("Get", checked_get),
    CHECKED("Flush", checked_flush),
    CHECKED("Flush_local", checked_flush_local),
    CHECKED("Flush_all", checked_flush_all),
    CHECKED("Flush_local_all", checked_flush_local_all),
};

/* The method of that name, and in which its number as a call; NULL if there is none. */
static PyMethodDef *method_named(const char *name, int *which) {
  for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
    if (strcmp(methods[i].ml_name, name) != 0) continue;
    for (*which = 0; strncmp(hot_names[*which], "Win.", 4) != 0 || strcmp(hot_names[*which] + 4, name) != 0;) ++*which;
    return &methods[i];
  }
  return NULL;
}

int checked_call(const char *name) {
  int which = -1;
  return method_named(name, &which) ? which : -1;
}

/* check_method(name, function) -> a method of Win that stands before the function; the function itself if there is none of that name */
static PyObject *check_method(PyObject *self, PyObject *args) {
  const char *name;
  PyObject *function;
  int which;
  if (!PyArg_ParseTuple(args, "sO", &name, &function)) return NULL;
  PyMethodDef *m = method_named(name, &which);
  if (!m) return Py_NewRef(function);
  PyMethodDef *const tables[] = {win_methods, win_epoch_methods};
  for (int i = 0; i < 2; i++)
    for (PyMethodDef *plain = tables[i]; plain->ml_name; plain++)
      if (strcmp(plain->ml_name, name) == 0) m->ml_doc = plain->ml_doc;
  Py_INCREF(function);
  Py_XSETREF(told[which], function);
  return PyDescr_NewMethod(WinType, m);
}

/* check_type(handle): the checker has been told of a datatype. */
static PyObject *check_type(PyObject *self, PyObject *handle) {
  int64_t type = PyLong_AsLongLong(handle);
  if (type == -1 && PyErr_Occurred()) return NULL;
  if (type > 0 && type < TYPES) type_is_known[type] = 1;
  Py_RETURN_NONE;
}

/* check_threads(yes): whether threads of the program run. Then memory is watched for longer than its operations (accesses.release). */
static PyObject *check_threads(PyObject *self, PyObject *yes) {
  threads = PyObject_IsTrue(yes);
  Py_RETURN_NONE;
}

PyMethodDef checked_methods[] = {{"check_method", check_method, METH_VARARGS, NULL},
                                 {"check_type", check_type, METH_O, NULL},
                                 {"check_threads", check_threads, METH_O, NULL},
                                 {0}};
