/* The hot methods that make and free communicators of one group, where Python has nothing to do beside that: no
   attributes to copy, no topology, and so on. As in hot_win.c, the Python method of the same name does the rest. */
#include "raw.h"
#include "_cgo_export.h"

PyObject *intracomm_class;

enum { WORLD = 1, SELF = 2 };

/* The object of a communicator that a call has made, or NULL if the call has failed. 0 stands for COMM_NULL. */
static PyObject *made_comm(PyObject *handle) {
  if (!handle) return NULL;
  int64_t h = PyLong_AsLongLong(handle);
  Py_DECREF(handle);
  if (h == -1 && PyErr_Occurred()) return NULL;
  if (h == 0) return PyObject_CallMethod(intracomm_class, "_wrap", "i", 0);
  PyTypeObject *type = (PyTypeObject *)intracomm_class;
  CommObject *c = allocate(type);
  if (c) c->h = h;
  return (PyObject *)c;
}

/* Whether the object is an Intracomm, and not of a class of the program. */
static int is_plain(PyObject *self) { return (PyObject *)Py_TYPE(self) == intracomm_class && comm_handle(self) > 0; }

static PyObject *comm_dup(HOT) {
  int64_t h = comm_handle(self), made = 0, req = 0;
  int code;
  if (n || kwnames || !is_plain(self)) FALL_BACK(CALL_COMM_DUP);
  int registered = is_registered("Comm", h, LAST_COPIED);
  if (registered < 0) return NULL;
  if (registered) FALL_BACK(CALL_COMM_DUP);
  NOTE_COMM(h, TRACE_NO_PEER, -1, 0);
  WITHOUT_GIL(code = gm_comm_dup(h, &made, &req));
  return made_comm(made_by(code, made, req));
}

static PyObject *comm_split(HOT) {
  static const char *const names[] = {"color", "key", NULL};
  PyObject *a[2];
  int64_t h = comm_handle(self), color = 0, key = 0, made = 0, req = 0;
  int code;
  if (!is_plain(self) || match_args(names, 0, args, n, kwnames, a) < 0 || parse_small_int(a[0], &color) < 0 ||
      parse_small_int(a[1], &key) < 0)
    FALL_BACK(CALL_COMM_SPLIT);
  NOTE_COMM(h, TRACE_NO_PEER, -1, 0);
  WITHOUT_GIL(code = gm_comm_split(h, color, key, &made, &req));
  return made_comm(made_by(code, made, req));
}

static PyObject *comm_free(HOT) {
  int64_t h = comm_handle(self), made = 0, req = 0;
  int code;
  if (n || kwnames || !is_plain(self) || h == WORLD || h == SELF) FALL_BACK(CALL_COMM_FREE);
  int registered = is_registered("Comm", h, REGISTRIES - 1);
  if (registered < 0) return NULL;
  if (registered) FALL_BACK(CALL_COMM_FREE);
  NOTE_COMM(h, TRACE_NO_PEER, -1, 0);
  ((CommObject *)self)->h = 0;
  WITHOUT_GIL(code = gm_comm_free(h, &made, &req));
  PyObject *done = made_by(code, made, req);
  if (!done) return NULL;
  Py_DECREF(done);
  Py_RETURN_NONE;
}

TRACED(comm_dup, CALL_COMM_DUP)
TRACED(comm_split, CALL_COMM_SPLIT)
TRACED(comm_free, CALL_COMM_FREE)

PyMethodDef comm_making_methods[] = {HOT_METHOD("Dup", traced_comm_dup, "($self, info=None)"),
                                     HOT_METHOD("Split", traced_comm_split, "($self, color=0, key=0)"),
                                     HOT_METHOD("Free", traced_comm_free, "($self)"),
                                     {0}};
