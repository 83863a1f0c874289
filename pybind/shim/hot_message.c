/* The hot methods of matched messages: the probe that makes one, and its receive. As in hot_comm.c, the usual arguments are
   read here, and the Python method of the same name gets the others. */
#include "object.h"
#include "_cgo_export.h"

PyObject *message_class;

static PyObject *matched_probe(HOT, int which) {
  static const char *const names[] = {"source", "tag", "status", NULL};
  PyObject *a[3];
  int64_t source = GM_ANY_SOURCE, tag = GM_ANY_TAG, message = 0, wait = 0, h = comm_handle(self);
  int code;
  gm_status own, *st = &own;
  if (!h || !message_class || match_args(names, 0, args, n, kwnames, a) < 0 || parse_small_int(a[0], &source) < 0 ||
      source == GM_PROC_NULL || parse_small_int(a[1], &tag) < 0 ||
      (a[2] && a[2] != Py_None && !PyObject_TypeCheck(a[2], StatusType)))
    FALL_BACK(which);
  if (a[2] && a[2] != Py_None) st = &((StatusObject *)a[2])->st;
  NOTE_COMM(h, source, tag, 0);
  RESTARTING(code, gm_probe(h, source, tag, st, &message, &wait));
  if (code == RAISED) gm_end_probe(wait);
  if (code) return none_or(code);
  MessageObject *m = allocate((PyTypeObject *)message_class);
  if (m) m->h = message, m->nbytes = st->bytes;
  return (PyObject *)m;
}

static PyObject *comm_mprobe(HOT) { return matched_probe(self, args, n, kwnames, CALL_MPROBE); }
static PyObject *comm_mprobe_object(HOT) { return matched_probe(self, args, n, kwnames, CALL_MPROBE_OBJECT); }

/* Whether the message can be received here, and the status to fill in. */
static int receivable(MessageObject *m, PyObject *status, gm_status **st, gm_status *own) {
  *st = own;
  if (gm_forked || m->h <= 0 || m->h == MESSAGE_FROM_NOBODY) return 0;
  if (!status || status == Py_None) return 1;
  *st = &((StatusObject *)status)->st;
  return PyObject_TypeCheck(status, StatusType);
}

static PyObject *message_recv(HOT) {
  static const char *const names[] = {"buf", "status", NULL};
  PyObject *a[2];
  MessageObject *m = (MessageObject *)self;
  spec s;
  int64_t pending = 0;
  int code, there = 0;
  gm_status own, *st;
  if (match_args(names, 1, args, n, kwnames, a) < 0 || !receivable(m, a[1], &st, &own) || parse_spec(a[0], 1, &s) < 0)
    FALL_BACK(CALL_RECV_MESSAGE);
  int64_t h = m->h;
  m->h = 0; /* before another thread can receive it */
  BLOCKING(code, pending, st,
           gm_blocking_mrecv(h, (int64_t)(intptr_t)s.view.buf, s.count, s.type, st, &pending, &there));
  if (there) m->h = h;
  if (TRACING && code == 0) trace_note_status(st, 1);
  release_spec(there ? 0 : code, pending, &s);
  return none_or(code);
}

static PyObject *message_recv_object(HOT) {
  static const char *const names[] = {"status", NULL};
  PyObject *a[1];
  MessageObject *m = (MessageObject *)self;
  gm_status own, *st;
  if (match_args(names, 0, args, n, kwnames, a) < 0 || !receivable(m, a[0], &st, &own))
    FALL_BACK(CALL_RECV_MESSAGE_OBJECT);
  int64_t h = m->h;
  m->h = 0;
  PyObject *pickle = receive_matched(h, m->nbytes, st), *o = pickle ? unpickled(pickle, NULL) : NULL;
  if (pickle && TRACING) trace_note_status(st, 1);
  Py_XDECREF(pickle);
  return o;
}

TRACED(comm_mprobe, CALL_MPROBE)
TRACED(comm_mprobe_object, CALL_MPROBE_OBJECT)
TRACED(message_recv, CALL_RECV_MESSAGE)
TRACED(message_recv_object, CALL_RECV_MESSAGE_OBJECT)
PyMethodDef comm_message_methods[] = {
    HOT_METHOD("Mprobe", traced_comm_mprobe, "($self, source=-1, tag=-1, status=None)"),
    HOT_METHOD("mprobe", traced_comm_mprobe_object, "($self, source=-1, tag=-1, status=None)"),
    {0}};
PyMethodDef message_methods[] = {HOT_METHOD("Recv", traced_message_recv, "($self, buf, status=None)"),
                                 HOT_METHOD("recv", traced_message_recv_object, "($self, status=None)"),
                                 {0}};
