/* The hot methods of Comm for Python objects. As in hot_comm.c, the usual arguments are read here, and the Python method
   of the same name gets the others, and all calls of intercommunicators. */
#include "object.h"
#include "_cgo_export.h"

/* Messages
   -------- */

static PyObject *comm_send_object(HOT) {
  static const char *const names[] = {"obj", "dest", "tag", NULL};
  PyObject *a[3];
  int64_t dest, tag = 0;
  if (!shape_of((CommObject *)self) || match_args(names, 2, args, n, kwnames, a) < 0 ||
      parse_small_int(a[1], &dest) < 0 || dest < 0 || parse_small_int(a[2], &tag) < 0)
    FALL_BACK(CALL_SEND_OBJECT);
  PyObject *pickle = pickled(a[0], "send"), *sent = NULL;
  if (pickle) sent = send_pickle(GM_SEND, ((CommObject *)self)->h, pickle, dest, tag);
  Py_XDECREF(pickle);
  return sent;
}

/* Hands the status st of a received pickle to the program and to the recording: there it is added to what the call sends, or stands
   alone. */
static PyObject *told(PyObject *pickle, const gm_status *st, PyObject *status, int add) {
  if (pickle && status && status != Py_None) ((StatusObject *)status)->st = *st;
  if (pickle && TRACING) trace_note_status(st, add);
  return pickle;
}

/* The object of a message. */
static PyObject *object_of(PyObject *pickle, const char *call) {
  PyObject *o = pickle ? unpickled(pickle, call) : NULL;
  Py_XDECREF(pickle);
  return o;
}

/* Reads the source and the status of a receive, and whether it is one that is for here: into no buffer, and not from
   PROC_NULL. */
static int receives(PyObject *buf, PyObject *from, PyObject *status, int64_t *source) {
  return (!buf || buf == Py_None) && parse_small_int(from, source) == 0 && (*source >= 0 || *source == GM_ANY_SOURCE) &&
         (!status || status == Py_None || PyObject_TypeCheck(status, StatusType));
}

static PyObject *comm_recv_object(HOT) {
  static const char *const names[] = {"buf", "source", "tag", "status", NULL};
  PyObject *a[4];
  int64_t source = GM_ANY_SOURCE, tag = GM_ANY_TAG;
  if (!shape_of((CommObject *)self) || match_args(names, 0, args, n, kwnames, a) < 0 ||
      !receives(a[0], a[1], a[3], &source) || parse_small_int(a[2], &tag) < 0)
    FALL_BACK(CALL_RECV_OBJECT);
  gm_status st;
  NOTE_COMM(((CommObject *)self)->h, source, tag, 0);
  return object_of(told(receive_pickle(((CommObject *)self)->h, source, tag, &st), &st, a[3], 0), "recv");
}

static PyObject *comm_isend_object(HOT) {
  static const char *const names[] = {"obj", "dest", "tag", NULL};
  PyObject *a[3];
  spec s;
  int64_t dest, tag = 0, req = 0;
  int code;
  if (!shape_of((CommObject *)self) || !request_class || match_args(names, 2, args, n, kwnames, a) < 0 ||
      parse_small_int(a[1], &dest) < 0 || dest < 0 || parse_small_int(a[2], &tag) < 0)
    FALL_BACK(CALL_ISEND_OBJECT);
  PyObject *pickle = pickled(a[0], "isend");
  if (!pickle) return NULL;
  int held = PyObject_GetBuffer(pickle, &s.view, PyBUF_SIMPLE);
  Py_DECREF(pickle);
  if (held < 0) return NULL;
  int64_t h = ((CommObject *)self)->h, at = (int64_t)(intptr_t)s.view.buf;
  NOTE_COMM(h, dest, tag, s.view.len);
  if (s.view.len > LONG_COPY) { /* see start_p2p */
    WITHOUT_GIL(code = gm_p2p(GM_SEND, h, at, s.view.len, object_type, dest, tag, &req));
  } else {
    code = gm_p2p(GM_SEND, h, at, s.view.len, object_type, dest, tag, &req);
  }
  if (code == 0 && req != GM_REQUEST_SENT) return new_request(req, &s);
  PyBuffer_Release(&s.view);
  return code ? raise_code(code) : new_request(req, NULL);
}

static PyObject *comm_irecv_object(HOT) {
  static const char *const names[] = {"buf", "source", "tag", NULL};
  PyObject *a[3];
  int64_t source = GM_ANY_SOURCE, tag = GM_ANY_TAG, req = 0, least;
  int code;
  if (!shape_of((CommObject *)self) || !request_class || match_args(names, 0, args, n, kwnames, a) < 0 ||
      !receives(a[0], a[1], NULL, &source) || parse_small_int(a[2], &tag) < 0 || (least = least_room()) < 0)
    FALL_BACK(CALL_IRECV_OBJECT);
  PyObject *room = new_room(least);
  if (!room) return NULL;
  int64_t h = ((CommObject *)self)->h, size, at = (int64_t)(intptr_t)room_memory(room, &size);
  NOTE_COMM(h, source, tag, size);
  /* without the GIL: a long message that is here already is copied at once */
  WITHOUT_GIL(code = gm_p2p(GM_RECV, h, at, size, object_type, source, tag, &req));
  if (code) {
    Py_DECREF(room);
    return raise_code(code);
  }
  PyObject *request = new_request(req, NULL);
  if (!request) return NULL; /* out of memory; the room stays */
  ((RequestObject *)request)->arriving = room;
  Py_INCREF(room);
  ((RequestObject *)request)->buf = room;
  return request;
}

static PyObject *comm_sendrecv_object(HOT) {
  static const char *const names[] = {"sendobj", "dest", "sendtag", "recvbuf", "source", "recvtag", "status", NULL};
  PyObject *a[7];
  int64_t dest, source = GM_ANY_SOURCE, send_tag = 0, tag = GM_ANY_TAG;
  gm_status st;
  if (!shape_of((CommObject *)self) || match_args(names, 2, args, n, kwnames, a) < 0 ||
      parse_small_int(a[1], &dest) < 0 || dest < 0 || parse_small_int(a[2], &send_tag) < 0 ||
      !receives(a[3], a[4], a[6], &source) || parse_small_int(a[5], &tag) < 0)
    FALL_BACK(CALL_SENDRECV_OBJECT);
  PyObject *pickle = pickled(a[0], "sendrecv");
  if (!pickle) return NULL;
  PyObject *received = sendrecv_pickles(((CommObject *)self)->h, pickle, dest, send_tag, source, tag, &st);
  Py_DECREF(pickle);
  return object_of(told(received, &st, a[6], 1), "sendrecv");
}

/* Collectives
   ----------- */

/* The object that this rank receives, of the one pickle that has come. */
static PyObject *only(const object_call *call, PyObject *pickles) {
  PyObject *o = pickles ? unpickled(PyList_GET_ITEM(pickles, 0), object_call_name(call->kind)) : NULL;
  Py_XDECREF(pickles);
  return o;
}

static PyObject *each(const object_call *call, PyObject *pickles) {
  PyObject *objects = pickles ? unpickled_list(pickles, object_call_name(call->kind)) : NULL;
  Py_XDECREF(pickles);
  return objects;
}

/* Does the call and drops what it sends. */
static PyObject *done(object_call *call) {
  PyObject *pickles = collect_locked(call);
  Py_XDECREF(call->sending);
  return pickles;
}

/* Whether o is a list or a tuple with an object for each rank. */
static int one_each(PyObject *o, const gm_comm_shape *shape) {
  return (PyList_CheckExact(o) || PyTuple_CheckExact(o)) && PySequence_Fast_GET_SIZE(o) == shape->size;
}

/* A list of the pickles of what is in a list or a tuple, which may change meanwhile. */
static PyObject *pickled_each(PyObject *objects, const char *call) {
  PyObject *items = PySequence_Tuple(objects), *out = items ? PyList_New(0) : NULL; /* see unpickled_list */
  for (Py_ssize_t i = 0; out && i < PyTuple_GET_SIZE(items); i++) {
    PyObject *pickle = pickled(PyTuple_GET_ITEM(items, i), call);
    if (!pickle || PyList_Append(out, pickle) < 0) Py_CLEAR(out);
    Py_XDECREF(pickle);
  }
  Py_XDECREF(items);
  return out;
}

static PyObject *comm_bcast_object(HOT) {
  static const char *const names[] = {"obj", "root", NULL};
  PyObject *a[2];
  object_call call = {.comm = (CommObject *)self, .kind = GM_BCAST};
  const gm_comm_shape *shape = one_group((CommObject *)self);
  if (!shape || match_args(names, 1, args, n, kwnames, a) < 0 || parse_small_int(a[1], &call.root) < 0)
    FALL_BACK(CALL_BCAST_OBJECT);
  if (call.root == shape->rank && !(call.sending = pickled(a[0], object_call_name(call.kind)))) return NULL;
  return only(&call, done(&call));
}

static PyObject *comm_gather_object(HOT) {
  static const char *const names[] = {"sendobj", "root", NULL};
  PyObject *a[2];
  object_call call = {.comm = (CommObject *)self, .kind = GM_GATHER};
  const gm_comm_shape *shape = one_group((CommObject *)self);
  if (!shape || match_args(names, 1, args, n, kwnames, a) < 0 || parse_small_int(a[1], &call.root) < 0)
    FALL_BACK(CALL_GATHER_OBJECT);
  int at_root = call.root == shape->rank;
  if (!(call.sending = pickled(a[0], object_call_name(call.kind)))) return NULL;
  PyObject *pickles = done(&call);
  if (!pickles || at_root) return each(&call, pickles);
  Py_DECREF(pickles);
  Py_RETURN_NONE;
}

static PyObject *comm_scatter_object(HOT) {
  static const char *const names[] = {"sendobj", "root", NULL};
  PyObject *a[2];
  object_call call = {.comm = (CommObject *)self, .kind = GM_SCATTER};
  const gm_comm_shape *shape = one_group((CommObject *)self);
  if (!shape || match_args(names, 1, args, n, kwnames, a) < 0 || parse_small_int(a[1], &call.root) < 0 ||
      (call.root == shape->rank && !one_each(a[0], shape)))
    FALL_BACK(CALL_SCATTER_OBJECT);
  if (call.root == shape->rank && !(call.sending = pickled_each(a[0], object_call_name(call.kind)))) return NULL;
  return only(&call, done(&call));
}

static PyObject *comm_allgather_object(HOT) {
  static const char *const names[] = {"sendobj", NULL};
  PyObject *a[1];
  object_call call = {.comm = (CommObject *)self, .kind = GM_ALLGATHER};
  if (!one_group((CommObject *)self) || match_args(names, 1, args, n, kwnames, a) < 0) FALL_BACK(CALL_ALLGATHER_OBJECT);
  if (!(call.sending = pickled(a[0], object_call_name(call.kind)))) return NULL;
  return each(&call, done(&call));
}

static PyObject *comm_alltoall_object(HOT) {
  static const char *const names[] = {"sendobj", NULL};
  PyObject *a[1];
  object_call call = {.comm = (CommObject *)self, .kind = GM_ALLTOALL};
  const gm_comm_shape *shape = one_group((CommObject *)self);
  if (!shape || match_args(names, 1, args, n, kwnames, a) < 0 || !one_each(a[0], shape))
    FALL_BACK(CALL_ALLTOALL_OBJECT);
  if (!(call.sending = pickled_each(a[0], object_call_name(call.kind)))) return NULL;
  return each(&call, done(&call));
}

static PyObject *comm_allreduce_object(HOT) {
  static const char *const names[] = {"sendobj", "op", NULL};
  PyObject *a[2];
  if (!one_group((CommObject *)self) || match_args(names, 1, args, n, kwnames, a) < 0) FALL_BACK(CALL_ALLREDUCE_OBJECT);
  return allreduce_object((CommObject *)self, a[0], a[1]);
}

TRACED(comm_send_object, CALL_SEND_OBJECT)
TRACED(comm_recv_object, CALL_RECV_OBJECT)
TRACED(comm_sendrecv_object, CALL_SENDRECV_OBJECT)
TRACED(comm_isend_object, CALL_ISEND_OBJECT)
TRACED(comm_irecv_object, CALL_IRECV_OBJECT)
TRACED(comm_bcast_object, CALL_BCAST_OBJECT)
TRACED(comm_gather_object, CALL_GATHER_OBJECT)
TRACED(comm_scatter_object, CALL_SCATTER_OBJECT)
TRACED(comm_allgather_object, CALL_ALLGATHER_OBJECT)
TRACED(comm_alltoall_object, CALL_ALLTOALL_OBJECT)
TRACED(comm_allreduce_object, CALL_ALLREDUCE_OBJECT)
PyMethodDef comm_object_methods[] = {
    HOT_METHOD("send", traced_comm_send_object, "($self, obj, dest, tag=0)"),
    HOT_METHOD("recv", traced_comm_recv_object, "($self, buf=None, source=-1, tag=-1, status=None)"),
    HOT_METHOD("isend", traced_comm_isend_object, "($self, obj, dest, tag=0)"),
    HOT_METHOD("irecv", traced_comm_irecv_object, "($self, buf=None, source=-1, tag=-1)"),
    HOT_METHOD("sendrecv", traced_comm_sendrecv_object,
               "($self, sendobj, dest, sendtag=0, recvbuf=None, source=-1, recvtag=-1, status=None)"),
    HOT_METHOD("bcast", traced_comm_bcast_object, "($self, obj, root=0)"),
    HOT_METHOD("gather", traced_comm_gather_object, "($self, sendobj, root=0)"),
    HOT_METHOD("scatter", traced_comm_scatter_object, "($self, sendobj, root=0)"),
    HOT_METHOD("allgather", traced_comm_allgather_object, "($self, sendobj)"),
    HOT_METHOD("alltoall", traced_comm_alltoall_object, "($self, sendobj)"),
    HOT_METHOD("allreduce", traced_comm_allreduce_object, "($self, sendobj, op=...)"),
    {0}};
