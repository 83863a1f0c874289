/* The hot methods of Comm and Request; see hot_win.c. */
#include "trace.h"
#include "_cgo_export.h"

#define HOT PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames
#define SLOWLY(which) return call_slow(which, self, args, n, kwnames)

int op_number(PyObject *o);

static int64_t comm_handle(PyObject *self) { return gm_forked ? 0 : ((CommObject *)self)->h; }

/* An optional rank or tag. */
static int small_int(PyObject *o, int64_t *v) {
  return o ? (parse_int(o, v) < 0 || *v < INT32_MIN || *v > INT32_MAX ? -1 : 0) : 0;
}

/* Releases the buffer of a blocking call. After Ctrl-C or an error others may still read
   or write it. */
static void release_view(int code, int64_t pending, spec *s) {
  if (code == 0)
    PyBuffer_Release(&s->view);
  else
    keep_view(pending, &s->view);
}

static PyObject *comm_send(HOT) {
  static const char *const names[] = {"buf", "dest", "tag", NULL};
  PyObject *a[3];
  spec s;
  int64_t dest, tag = 0, pending = 0, h = comm_handle(self);
  int code;
  gm_status st;
  if (!h || match_args(names, 2, args, n, kwnames, a) < 0 || small_int(a[1], &dest) < 0 || small_int(a[2], &tag) < 0 ||
      parse_spec(a[0], 0, &s) < 0)
    SLOWLY(SLOW_SEND);
  NOTE_COMM(h, dest, tag, s.count * s.size);
  BLOCKING(code, pending, &st, gm_blocking(GM_SEND, h, (int64_t)(intptr_t)s.view.buf, s.count, s.type, dest, tag, &st, &pending));
  release_view(code, pending, &s);
  return none_or(code);
}

static PyObject *comm_recv(HOT) {
  static const char *const names[] = {"buf", "source", "tag", "status", NULL};
  PyObject *a[4];
  spec s;
  int64_t source = -1, tag = -1, pending = 0, h = comm_handle(self);
  int code;
  gm_status st;
  if (!h || match_args(names, 1, args, n, kwnames, a) < 0 || small_int(a[1], &source) < 0 || small_int(a[2], &tag) < 0 ||
      (a[3] && a[3] != Py_None && !PyObject_TypeCheck(a[3], &StatusType)) || parse_spec(a[0], 1, &s) < 0)
    SLOWLY(SLOW_RECV);
  NOTE_COMM(h, source, tag, 0);
  BLOCKING(code, pending, &st, gm_blocking(GM_RECV, h, (int64_t)(intptr_t)s.view.buf, s.count, s.type, source, tag, &st, &pending));
  if (a[3] && a[3] != Py_None && code != -2) ((StatusObject *)a[3])->st = st;
  if (TRACING && code == 0) trace_note_status(&st, 1);
  release_view(code, pending, &s);
  return none_or(code);
}

/* A new Request that keeps the buffer acquired. */
static PyObject *new_request(int64_t h, spec *s) {
  PyTypeObject *type = (PyTypeObject *)request_class;
  HolderObject *holder = (HolderObject *)HolderType.tp_alloc(&HolderType, 0);
  RequestObject *r = holder ? (RequestObject *)type->tp_alloc(type, 0) : NULL;
  if (!r) {
    Py_XDECREF(holder);
    return NULL; /* out of memory; the buffer stays acquired */
  }
  holder->view = s->view;
  r->h = h;
  r->buf = (PyObject *)holder;
  keep_sweep();
  return (PyObject *)r;
}

static PyObject *start_p2p(HOT, int which, int kind) {
  static const char *const send_names[] = {"buf", "dest", "tag", NULL}, *const recv_names[] = {"buf", "source", "tag", NULL};
  PyObject *a[3];
  spec s;
  int64_t peer = -1, tag = kind == GM_RECV ? -1 : 0, req = 0, h = comm_handle(self);
  if (!h || !request_class || match_args(kind == GM_RECV ? recv_names : send_names, kind == GM_RECV ? 1 : 2, args, n, kwnames, a) < 0 ||
      small_int(a[1], &peer) < 0 || small_int(a[2], &tag) < 0 || parse_spec(a[0], kind == GM_RECV, &s) < 0)
    SLOWLY(which);
  int code;
  NOTE_COMM(h, peer, tag, s.count * s.size);
  if (s.count * s.size > LONG_COPY) { /* the data of a message that is here already is copied at once */
    Py_BEGIN_ALLOW_THREADS code = gm_p2p(kind, h, (int64_t)(intptr_t)s.view.buf, s.count, s.type, peer, tag, &req);
    Py_END_ALLOW_THREADS
  } else {
    code = gm_p2p(kind, h, (int64_t)(intptr_t)s.view.buf, s.count, s.type, peer, tag, &req);
  }
  if (code) {
    PyBuffer_Release(&s.view);
    return raise_code(code);
  }
  return new_request(req, &s);
}

static PyObject *comm_isend(HOT) { return start_p2p(self, args, n, kwnames, SLOW_ISEND, GM_SEND); }
static PyObject *comm_irecv(HOT) { return start_p2p(self, args, n, kwnames, SLOW_IRECV, GM_RECV); }

static PyObject *comm_barrier(HOT) {
  int64_t pending = 0, h = comm_handle(self);
  int code;
  gm_status st;
  if (!h || n || kwnames) SLOWLY(SLOW_BARRIER);
  NOTE_COMM(h, TRACE_NO_PEER, -1, 0);
  BLOCKING(code, pending, &st, gm_barrier(h, &pending));
  return none_or(code);
}

static PyObject *comm_bcast(HOT) {
  static const char *const names[] = {"buf", "root", NULL};
  PyObject *a[2];
  spec s;
  int64_t root = 0, pending = 0, h = comm_handle(self);
  int code;
  gm_status st;
  if (!h || match_args(names, 1, args, n, kwnames, a) < 0 || small_int(a[1], &root) < 0 || parse_spec(a[0], 0, &s) < 0)
    SLOWLY(SLOW_BCAST);
  if (s.view.readonly && gm_comm_rank(h) != root) {
    PyBuffer_Release(&s.view);
    SLOWLY(SLOW_BCAST);
  }
  NOTE_COMM(h, root, -1, s.count * s.size);
  BLOCKING(code, pending, &st, gm_coll_blocking(GM_BCAST, h, 0, 0, 0, (int64_t)(intptr_t)s.view.buf, s.count, s.type, 0, root, &pending));
  release_view(code, pending, &s);
  return none_or(code);
}

static PyObject *comm_allreduce(HOT) {
  static const char *const names[] = {"sendbuf", "recvbuf", "op", NULL};
  PyObject *a[3];
  spec s, r;
  int64_t pending = 0, h = comm_handle(self), addr = IN_PLACE;
  int code, op, inplace;
  gm_status st;
  if (!h || match_args(names, 2, args, n, kwnames, a) < 0 || (op = op_number(a[2])) < 0) SLOWLY(SLOW_ALLREDUCE);
  inplace = a[0] == in_place;
  if (!inplace) {
    if (parse_spec(a[0], 0, &s) < 0) SLOWLY(SLOW_ALLREDUCE);
    addr = (int64_t)(intptr_t)s.view.buf;
  }
  if (parse_spec(a[1], 1, &r) < 0) {
    if (!inplace) PyBuffer_Release(&s.view);
    SLOWLY(SLOW_ALLREDUCE);
  }
  NOTE_COMM(h, TRACE_NO_PEER, -1, r.count * r.size);
  BLOCKING(code, pending, &st,
           gm_coll_blocking(GM_ALLREDUCE, h, addr, inplace ? 0 : s.count, inplace ? 0 : s.type, (int64_t)(intptr_t)r.view.buf,
                            r.count, r.type, op, 0, &pending));
  if (!inplace) release_view(code, pending, &s);
  release_view(code, pending, &r);
  return none_or(code);
}

void settle(RequestObject *r, int64_t h, int code) {
  if (r->h != h || (r->kind & REQUEST_PERSISTENT)) return;
  PyObject *memory = r->buf;
  r->h = r->kind = 0;
  r->buf = NULL;
  if (code)
    keep_until_over(h, memory);
  else
    Py_XDECREF(memory);
}

/* Not one that completes with a step in Python: see request.py. */
static int plain(PyObject *o) {
  return request_class && (Py_TYPE(o) == (PyTypeObject *)request_class || Py_TYPE(o) == (PyTypeObject *)prequest_class) &&
         !(((RequestObject *)o)->kind & REQUEST_STEPPED);
}

static int wait_for(RequestObject *r, gm_status *st) {
  int64_t h = r->h; /* another thread may wait for it as well, and be first */
  int code;
  for (;;) {
    Py_BEGIN_ALLOW_THREADS code = gm_wait(h, st);
    Py_END_ALLOW_THREADS if (code != GM_INTERRUPTED) break;
    if (PyErr_CheckSignals() < 0) return -2;
  }
  settle(r, h, code);
  if (TRACING && code == 0) trace_note_status(st, 1);
  return code;
}

static int status_of(PyObject *o, gm_status **st, gm_status *own) {
  *st = own;
  if (!o || o == Py_None) return 0;
  if (!PyObject_TypeCheck(o, &StatusType)) return -1;
  *st = &((StatusObject *)o)->st;
  return 0;
}

static PyObject *request_wait(HOT) {
  static const char *const names[] = {"status", NULL};
  PyObject *a[1];
  gm_status own, *st;
  if (gm_forked || !plain(self) || match_args(names, 0, args, n, kwnames, a) < 0 || status_of(a[0], &st, &own) < 0)
    SLOWLY(SLOW_WAIT);
  int code = wait_for((RequestObject *)self, st);
  if (code == 0) Py_RETURN_TRUE;
  return none_or(code);
}

static PyObject *request_test(HOT) {
  static const char *const names[] = {"status", NULL};
  PyObject *a[1];
  gm_status own, *st;
  int done = 0;
  if (gm_forked || !plain(self) || match_args(names, 0, args, n, kwnames, a) < 0 || status_of(a[0], &st, &own) < 0)
    SLOWLY(SLOW_TEST);
  RequestObject *r = (RequestObject *)self;
  if (r->h == 0) { /* nothing to do: answered without entering Go */
    *st = (gm_status){.source = -1, .tag = -1};
    Py_RETURN_TRUE;
  }
  int64_t h = r->h;
  int code;
  Py_BEGIN_ALLOW_THREADS code = gm_test(h, st, &done);
  Py_END_ALLOW_THREADS if (done || code) settle(r, h, code);
  if (TRACING && done && !code) trace_note_status(st, 1);
  return code ? raise_code(code) : PyBool_FromLong(done);
}

/* Starts a persistent request; see start_p2p for the GIL. */
static int start(RequestObject *r) {
  int code;
  if (r->buf && Py_TYPE(r->buf) == &HolderType && ((HolderObject *)r->buf)->view.len <= LONG_COPY) return gm_start(r->h);
  Py_BEGIN_ALLOW_THREADS code = gm_start(r->h);
  Py_END_ALLOW_THREADS return code;
}

static PyObject *request_start(HOT) {
  if (gm_forked || n || kwnames || !plain(self)) SLOWLY(SLOW_START);
  return none_or(start((RequestObject *)self));
}

/* The class methods take a list of requests, which another thread or a signal handler may
   change meanwhile: this is what was in it, as a new tuple, or NULL if not all of that are
   plain requests. */
static PyObject *list_of(PyObject *o) {
  if (!PyList_CheckExact(o) && !PyTuple_CheckExact(o)) return NULL;
  PyObject *list = PySequence_Tuple(o);
  for (Py_ssize_t i = 0; list && i < PyTuple_GET_SIZE(list); i++)
    if (!plain(PyTuple_GET_ITEM(list, i))) Py_CLEAR(list);
  return list;
}

static PyObject *request_startall(HOT) {
  static const char *const names[] = {"requests", NULL};
  PyObject *a[1], *list;
  if (gm_forked || match_args(names, 1, args, n, kwnames, a) < 0 || !(list = list_of(a[0]))) SLOWLY(SLOW_STARTALL);
  int code = 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(list) && !code; i++) code = start((RequestObject *)PyTuple_GET_ITEM(list, i));
  Py_DECREF(list);
  return none_or(code);
}

static PyObject *request_waitall(HOT) {
  static const char *const names[] = {"requests", "statuses", NULL};
  PyObject *a[2], *list;
  if (gm_forked || match_args(names, 1, args, n, kwnames, a) < 0 || (a[1] && a[1] != Py_None) || !(list = list_of(a[0])))
    SLOWLY(SLOW_WAITALL);
  int first = 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(list); i++) {
    gm_status own;
    RequestObject *r = (RequestObject *)PyTuple_GET_ITEM(list, i);
    int code = r->h ? wait_for(r, &own) : 0;
    if (code == -2) {
      Py_DECREF(list);
      return NULL;
    }
    if (code && !first) first = code;
  }
  Py_DECREF(list);
  if (first) return raise_code(first);
  Py_RETURN_TRUE;
}

TRACED(comm_send, SLOW_SEND)
TRACED(comm_recv, SLOW_RECV)
TRACED(comm_isend, SLOW_ISEND)
TRACED(comm_irecv, SLOW_IRECV)
TRACED(comm_barrier, SLOW_BARRIER)
TRACED(comm_bcast, SLOW_BCAST)
TRACED(comm_allreduce, SLOW_ALLREDUCE)
TRACED(request_wait, SLOW_WAIT)
TRACED(request_test, SLOW_TEST)
TRACED(request_start, SLOW_START)
TRACED(request_startall, SLOW_STARTALL)
TRACED(request_waitall, SLOW_WAITALL)

/* set_slow has the docstring of the Python method follow the signature. */
#define M(name, f, signature) {name, (PyCFunction)(void *)f, METH_FASTCALL | METH_KEYWORDS, name signature SIGNATURE_END}
#define CM(name, f, signature) {name, (PyCFunction)(void *)f, METH_FASTCALL | METH_KEYWORDS | METH_CLASS, name signature SIGNATURE_END}

PyMethodDef comm_methods[] = {
    M("Send", traced_comm_send, "($self, buf, dest, tag=0)"),
    M("Recv", traced_comm_recv, "($self, buf, source=-1, tag=-1, status=None)"),
    M("Isend", traced_comm_isend, "($self, buf, dest, tag=0)"),
    M("Irecv", traced_comm_irecv, "($self, buf, source=-1, tag=-1)"),
    M("Barrier", traced_comm_barrier, "($self)"),
    M("Bcast", traced_comm_bcast, "($self, buf, root=0)"),
    M("Allreduce", traced_comm_allreduce, "($self, sendbuf, recvbuf, op=...)"),
    {0}};

PyMethodDef request_methods[] = {
    M("Wait", traced_request_wait, "($self, status=None)"),
    M("Test", traced_request_test, "($self, status=None)"),
    M("Start", traced_request_start, "($self)"),
    CM("Startall", traced_request_startall, "($cls, requests)"),
    CM("Waitall", traced_request_waitall, "($cls, requests, statuses=None)"),
    {0}};
