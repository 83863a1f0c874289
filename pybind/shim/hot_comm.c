/* The hot methods of Comm: messages and the barrier. As in hot_win.c, the usual arguments are read here, and
   the Python method of the same name gets the others. A call of these enters Go once, and again only after signals.

   They are called with the GIL held, and give it up while they wait. */
#include "trace.h"
#include "_cgo_export.h"

/* What is in a status that a call has been given: a call that is refused leaves it as it is. */
static gm_status status_in(PyObject *status) {
  return status && status != Py_None ? ((StatusObject *)status)->st : (gm_status){0};
}

/* The threads of module threading, by number, as long as they run; NULL if Python does not say. */
static PyObject *threads;

PyObject *set_threads(PyObject *self, PyObject *dict) {
  Py_INCREF(dict);
  Py_XSETREF(threads, dict);
  if (!PyDict_CheckExact(dict)) Py_CLEAR(threads);
  Py_RETURN_NONE;
}

int send_message(int kind, int64_t comm, const void *p, int64_t count, int64_t type, int64_t bytes, int64_t dest,
                 int64_t tag, int64_t *pending) {
  int code;
  gm_status st;
  /* One that is sent at once, as a rule, keeps the GIL if nobody else may want it: giving it up and taking it again would
     take longer than the rest. Other threads would get it only every 5 ms if this one does nothing but send. */
  if (kind == GM_SSEND || bytes > GM_EAGER_LIMIT || !threads || PyDict_Size(threads) > 1) {
    BLOCKING(code, *pending, &st, gm_blocking(kind, comm, (int64_t)(intptr_t)p, count, type, dest, tag, &st, pending));
    return code;
  }
  code = gm_send_now(kind, comm, (int64_t)(intptr_t)p, count, type, dest, tag, pending);
  if (code != GM_INTERRUPTED) return code;
  gm_blocks(*pending);
  return resume(*pending, &st);
}

static PyObject *send_in_mode(HOT, int which, int kind) {
  static const char *const names[] = {"buf", "dest", "tag", NULL};
  PyObject *a[3];
  spec s;
  int64_t dest, tag = 0, pending = 0, h = comm_handle(self);
  int code;
  if (!h || match_args(names, 2, args, n, kwnames, a) < 0 || parse_small_int(a[1], &dest) < 0 ||
      parse_small_int(a[2], &tag) < 0 || parse_message(a[0], 0, &s) < 0)
    FALL_BACK(which);
  NOTE_COMM(h, dest, tag, s.count * s.size);
  code = send_message(kind, h, s.view.buf, s.count, s.type, s.count * s.size, dest, tag, &pending);
  release_spec(code, pending, &s);
  return none_or(code);
}

static PyObject *comm_send(HOT) { return send_in_mode(self, args, n, kwnames, CALL_SEND, GM_SEND); }
static PyObject *comm_ssend(HOT) { return send_in_mode(self, args, n, kwnames, CALL_SSEND, GM_SSEND); }

static PyObject *comm_recv(HOT) {
  static const char *const names[] = {"buf", "source", "tag", "status", NULL};
  PyObject *a[4];
  spec s;
  int64_t source = GM_ANY_SOURCE, tag = GM_ANY_TAG, pending = 0, h = comm_handle(self);
  int code;
  gm_status st;
  if (!h || match_args(names, 1, args, n, kwnames, a) < 0 || parse_small_int(a[1], &source) < 0 ||
      parse_small_int(a[2], &tag) < 0 || (a[3] && a[3] != Py_None && !PyObject_TypeCheck(a[3], StatusType)) ||
      parse_message(a[0], 1, &s) < 0)
    FALL_BACK(CALL_RECV);
  st = status_in(a[3]);
  NOTE_COMM(h, source, tag, 0);
  BLOCKING(code, pending, &st,
           gm_blocking(GM_RECV, h, (int64_t)(intptr_t)s.view.buf, s.count, s.type, source, tag, &st, &pending));
  if (a[3] && a[3] != Py_None && code != RAISED) ((StatusObject *)a[3])->st = st;
  if (TRACING && code == 0) trace_note_status(&st, 1);
  release_spec(code, pending, &s);
  return none_or(code);
}

/* The arguments of a sendrecv: what is sent, what is received, and status. */
typedef struct {
  spec s, r;
  int64_t dest, send_tag, source, recv_tag;
  PyObject *status;
} exchange;

/* Reads them. Returns -1 for what Python has to read; it holds no buffer then. */
static int read_exchange(PyObject *const *args, Py_ssize_t n, PyObject *kwnames, exchange *x) {
  static const char *const names[] = {"sendbuf", "dest", "sendtag", "recvbuf", "source", "recvtag", "status", NULL};
  PyObject *a[7];
  x->send_tag = 0, x->source = GM_ANY_SOURCE, x->recv_tag = GM_ANY_TAG;
  if (match_args(names, 2, args, n, kwnames, a) < 0 || parse_small_int(a[1], &x->dest) < 0 ||
      parse_small_int(a[2], &x->send_tag) < 0 || !a[3] || parse_small_int(a[4], &x->source) < 0 ||
      parse_small_int(a[5], &x->recv_tag) < 0 || (a[6] && a[6] != Py_None && !PyObject_TypeCheck(a[6], StatusType)) ||
      parse_message(a[0], 0, &x->s) < 0)
    return -1;
  if (parse_message(a[3], 1, &x->r) < 0) {
    PyBuffer_Release(&x->s.view);
    return -1;
  }
  x->status = a[6] == Py_None ? NULL : a[6];
  return 0;
}

/* Both halves as Go takes them. */
#define SENT(x) \
  (int64_t[]) { (int64_t)(intptr_t)(x).s.view.buf, (x).s.count, (x).s.type, (x).dest, (x).send_tag }
#define RECEIVED(x) \
  (int64_t[]) { (int64_t)(intptr_t)(x).r.view.buf, (x).r.count, (x).r.type, (x).source, (x).recv_tag }

static PyObject *comm_sendrecv(HOT) {
  exchange x;
  int64_t pending = 0, h = comm_handle(self);
  int code;
  gm_status st;
  if (!h || read_exchange(args, n, kwnames, &x) < 0) FALL_BACK(CALL_SENDRECV);
  st = status_in(x.status);
  NOTE_COMM(h, x.dest, x.send_tag, x.s.count * x.s.size);
  BLOCKING(code, pending, &st, gm_sendrecv(h, SENT(x), RECEIVED(x), &st, &pending));
  if (x.status && code != RAISED) ((StatusObject *)x.status)->st = st;
  release_spec(code, pending, &x.s);
  release_spec(code, pending, &x.r);
  return none_or(code);
}

/* Up to so many bytes Go copies what it can't send at once; the data of longer messages is copied here, before they are sent. */
enum { SHORT_REPLACED = 4 << 10 };

static PyObject *comm_sendrecv_replace(HOT) {
  static const char *const names[] = {"buf", "dest", "sendtag", "source", "recvtag", "status", NULL};
  PyObject *a[6];
  exchange x = {.source = GM_ANY_SOURCE, .recv_tag = GM_ANY_TAG};
  int64_t pending = 0, h = comm_handle(self);
  int code;
  gm_status st;
  if (!h || match_args(names, 2, args, n, kwnames, a) < 0 || parse_small_int(a[1], &x.dest) < 0 ||
      parse_small_int(a[2], &x.send_tag) < 0 || parse_small_int(a[3], &x.source) < 0 ||
      parse_small_int(a[4], &x.recv_tag) < 0 || (a[5] && a[5] != Py_None && !PyObject_TypeCheck(a[5], StatusType)) ||
      parse_spec(a[0], 1, &x.r) < 0)
    FALL_BACK(CALL_SENDRECV_REPLACE);
  Py_ssize_t bytes = x.r.count * x.r.size;
  if (bytes <= SHORT_REPLACED) {
    int64_t all[] = {(int64_t)(intptr_t)x.r.view.buf, x.r.count, x.r.type, x.dest, x.send_tag, x.source, x.recv_tag};
    st = status_in(a[5]);
    NOTE_COMM(h, x.dest, x.send_tag, bytes);
    BLOCKING(code, pending, &st, gm_sendrecv_replace(h, all, &st, &pending));
    if (a[5] && a[5] != Py_None && code != RAISED) ((StatusObject *)a[5])->st = st;
    release_spec(code, pending, &x.r);
    return none_or(code);
  }
  PyObject *copy = PyBytes_FromStringAndSize(NULL, bytes);
  int faulted = copy && program_copy(PyBytes_AS_STRING(copy), x.r.view.buf, bytes);
  x.s = x.r;
  if (!copy || faulted || PyObject_GetBuffer(copy, &x.s.view, PyBUF_SIMPLE) < 0) {
    PyBuffer_Release(&x.r.view);
    Py_XDECREF(copy);
    return faulted ? raise_code(gm_faulted(guard_address())) : NULL;
  }
  Py_DECREF(copy); /* the view has it */
  st = status_in(a[5]);
  NOTE_COMM(h, x.dest, x.send_tag, bytes);
  BLOCKING(code, pending, &st, gm_sendrecv(h, SENT(x), RECEIVED(x), &st, &pending));
  if (a[5] && a[5] != Py_None && code != RAISED) ((StatusObject *)a[5])->st = st;
  release_spec(code, pending, &x.s);
  release_spec(code, pending, &x.r);
  return none_or(code);
}

static PyObject *start_p2p(HOT, int which, int kind) {
  static const char *const send_names[] = {"buf", "dest", "tag", NULL}, *const recv_names[] = {"buf", "source", "tag",
                                                                                               NULL};
  PyObject *a[3];
  spec s;
  int64_t peer = GM_ANY_SOURCE, tag = kind == GM_RECV ? GM_ANY_TAG : 0, req = 0, h = comm_handle(self);
  if (!h || !request_class ||
      match_args(kind == GM_RECV ? recv_names : send_names, kind == GM_RECV ? 1 : 2, args, n, kwnames, a) < 0 ||
      parse_small_int(a[1], &peer) < 0 || parse_small_int(a[2], &tag) < 0 ||
      parse_message(a[0], kind == GM_RECV, &s) < 0)
    FALL_BACK(which);
  int code;
  NOTE_COMM(h, peer, tag, s.count * s.size);
  if (s.count * s.size > LONG_COPY) { /* the data of a message that is here already is copied at once */
    WITHOUT_GIL(code = gm_p2p(kind, h, (int64_t)(intptr_t)s.view.buf, s.count, s.type, peer, tag, &req));
  } else {
    code = gm_p2p(kind, h, (int64_t)(intptr_t)s.view.buf, s.count, s.type, peer, tag, &req);
  }
  if (code) {
    PyBuffer_Release(&s.view);
    return raise_code(code);
  }
  if (req == GM_REQUEST_SENT) {
    PyBuffer_Release(&s.view);
    return new_request(req, NULL);
  }
  return new_request(req, &s);
}

static PyObject *comm_isend(HOT) { return start_p2p(self, args, n, kwnames, CALL_ISEND, GM_SEND); }
static PyObject *comm_issend(HOT) { return start_p2p(self, args, n, kwnames, CALL_ISSEND, GM_SSEND); }
static PyObject *comm_irecv(HOT) { return start_p2p(self, args, n, kwnames, CALL_IRECV, GM_RECV); }

static PyObject *comm_barrier(HOT) {
  int64_t pending = 0, h = comm_handle(self);
  int code;
  gm_status st;
  if (!h || n || kwnames) FALL_BACK(CALL_BARRIER);
  NOTE_COMM(h, TRACE_NO_PEER, -1, 0);
  BLOCKING(code, pending, &st, gm_barrier(h, &pending));
  return none_or(code);
}

TRACED(comm_send, CALL_SEND)
TRACED(comm_recv, CALL_RECV)
TRACED(comm_ssend, CALL_SSEND)
TRACED(comm_isend, CALL_ISEND)
TRACED(comm_issend, CALL_ISSEND)
TRACED(comm_irecv, CALL_IRECV)
TRACED(comm_barrier, CALL_BARRIER)
TRACED(comm_sendrecv, CALL_SENDRECV)
TRACED(comm_sendrecv_replace, CALL_SENDRECV_REPLACE)
PyMethodDef comm_methods[] = {
    HOT_METHOD("Send", traced_comm_send, "($self, buf, dest, tag=0)"),
    HOT_METHOD("Recv", traced_comm_recv, "($self, buf, source=-1, tag=-1, status=None)"),
    HOT_METHOD("Isend", traced_comm_isend, "($self, buf, dest, tag=0)"),
    HOT_METHOD("Ssend", traced_comm_ssend, "($self, buf, dest, tag=0)"),
    HOT_METHOD("Issend", traced_comm_issend, "($self, buf, dest, tag=0)"),
    HOT_METHOD("Irecv", traced_comm_irecv, "($self, buf, source=-1, tag=-1)"),
    HOT_METHOD("Sendrecv", traced_comm_sendrecv,
               "($self, sendbuf, dest, sendtag=0, recvbuf=None, source=-1, recvtag=-1, status=None)"),
    HOT_METHOD("Sendrecv_replace", traced_comm_sendrecv_replace,
               "($self, buf, dest, sendtag=0, source=-1, recvtag=-1, status=None)"),
    HOT_METHOD("Barrier", traced_comm_barrier, "($self)"),
    {0}};
