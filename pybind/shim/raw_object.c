/* The raw calls that move Python objects, for the Python methods that hot_object.c falls back to. */
#include "object.h"
#include "raw.h"
#include "_cgo_export.h"

/* send_object(kind, comm, pickle, dest, tag) */
static PyObject *raw_send_object(ARGS) {
  int64_t a[2], to[2];
  if (n != 5) return PyErr_Format(PyExc_TypeError, "send_object takes 5 arguments");
  if (integers("send_object kind communicator", args, 2, 2, a) < 0 ||
      integers("send_object dest tag", args + 3, 2, 2, to) < 0)
    return NULL;
  return send_pickle((int)a[0], a[1], args[2], to[0], to[1]);
}

/* recv_object(comm, source, tag, status) -> the pickle */
static PyObject *raw_recv_object(ARGS) {
  int64_t a[3];
  gm_status *st, own;
  if (n != 4) return PyErr_Format(PyExc_TypeError, "recv_object takes 4 arguments");
  if (integers("recv_object communicator source tag", args, 3, 3, a) < 0 || status_arg(args[3], &st) < 0) return NULL;
  NOTE_COMM(a[0], a[1], a[2], 0);
  PyObject *pickle = receive_pickle(a[0], a[1], a[2], &own); /* another thread may look into the program's status */
  if (pickle && st) *st = own;
  if (pickle && TRACING) trace_note_status(&own, 0);
  return pickle;
}

static CommObject *comm_arg(PyObject *o) {
  if (check_process() < 0) return NULL;
  if (!PyObject_TypeCheck(o, CommType)) {
    PyErr_Format(PyExc_TypeError, "expecting a communicator, got %.100s", type_name(o));
    return NULL;
  }
  CommObject *comm = (CommObject *)o;
  gm_comm_shape shape;
  int code = shape_of(comm) ? 0 : gm_shape_of(comm->h, &shape);
  if (code) raise_code(code);
  return code ? NULL : comm;
}

/* collect(comm, kind, sending, root) -> a list of the pickles that this rank receives. sending: a pickle, a list of one
   for each rank, or None. */
static PyObject *raw_collect(ARGS) {
  int64_t kind, root;
  if (n != 4) return PyErr_Format(PyExc_TypeError, "collect takes 4 arguments");
  object_call call = {.sending = args[2] == Py_None ? NULL : args[2]};
  if (!(call.comm = comm_arg(args[0])) || integers("collect kind", args + 1, 1, 1, &kind) < 0 ||
      integers("collect root", args + 3, 1, 1, &root) < 0)
    return NULL;
  call.kind = (int)kind, call.root = root;
  return collect_locked(&call);
}

/* allreduce_object(comm, object, op) */
static PyObject *raw_allreduce_object(ARGS) {
  if (n != 3) return PyErr_Format(PyExc_TypeError, "allreduce_object takes 3 arguments");
  CommObject *comm = comm_arg(args[0]);
  return comm ? allreduce_object(comm, args[1], args[2]) : NULL;
}

PyMethodDef raw_object_methods[] = {{"set_objects", set_objects, METH_VARARGS, NULL},
                                    {"room", raw_room, METH_O, NULL},
                                    F(send_object),
                                    F(recv_object),
                                    F(collect),
                                    F(allreduce_object),
                                    {0}};
