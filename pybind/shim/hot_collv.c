/* The hot methods of Comm: the collectives of buffers with a count for each rank. As in hot_comm.c, the usual arguments are
   read here, and the Python method of the same name gets the others, and all calls of intercommunicators. */
#include "object.h"
#include "_cgo_export.h"

enum { FEW_RANKS = 16 };

/* One side of a call. */
typedef struct {
  spec s;
  int held; /* the buffer is to be released */
  gm_side side;
  int64_t few[2 * FEW_RANKS], *lists; /* counts and displacements: few, or memory */
} vector;

static void drop_vector(vector *v) {
  if (v->held) PyBuffer_Release(&v->s.view);
  if (v->lists && v->lists != v->few) PyMem_Free(v->lists);
}

/* Reads the side of a rank that has one part. */
static int read_one(PyObject *o, int writable, vector *v) {
  if (parse_message(o, writable, &v->s) < 0) return -1;
  v->held = 1, v->lists = v->few, v->few[0] = v->s.count;
  v->side = (gm_side){(int64_t)(intptr_t)v->s.view.buf, v->s.type, v->few, NULL, 1, 0};
  return 0;
}

int read_integers(PyObject *o, int64_t n, int64_t *out) {
  if (PyList_CheckExact(o) || PyTuple_CheckExact(o)) {
    if (PySequence_Fast_GET_SIZE(o) != n) return -1;
    for (int64_t i = 0; i < n; i++) {
      PyObject *item = PySequence_Fast_GET_ITEM(o, i);
      if (!PyLong_CheckExact(item) || parse_int(item, &out[i]) < 0) return -1; /* nothing here runs Python */
    }
    return 0;
  }
  if (PyBytes_Check(o) || PyByteArray_Check(o) || !PyObject_CheckBuffer(o)) return -1;
  Py_buffer b;
  if (PyObject_GetBuffer(o, &b, PyBUF_FORMAT | PyBUF_ND) < 0) {
    PyErr_Clear();
    return -1;
  }
  const char *f = b.format ? b.format : "B";
  int integers = b.ndim == 1 && b.shape[0] == n && f[0] && !f[1], ok = 0;
  if (integers && b.itemsize == 8 && (*f == 'l' || *f == 'q')) {
    memcpy(out, b.buf, n * sizeof *out);
    ok = 1;
  } else if (integers && b.itemsize == 4 && *f == 'i') {
    for (int64_t i = 0; i < n; i++) out[i] = ((const int32_t *)b.buf)[i];
    ok = 1;
  }
  PyBuffer_Release(&b);
  return ok ? 0 : -1;
}

/* Reads the side of a rank that has a part for each of size ranks: each has to be in the buffer. */
static int read_parts(PyObject *o, int64_t size, int writable, vector *v) {
  PyObject *b = o, *c = NULL, *d = NULL, *t = NULL;
  if (PyList_CheckExact(o) || PyTuple_CheckExact(o)) {
    Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
    if (n < 2 || n > 4) return -1;
    b = PySequence_Fast_GET_ITEM(o, 0), c = PySequence_Fast_GET_ITEM(o, 1);
    if (n > 2) t = PySequence_Fast_GET_ITEM(o, n - 1);
    if (n == 4)
      d = PySequence_Fast_GET_ITEM(o, 2);
    else if (n == 2 && PyObject_TypeCheck(c, DatatypeType))
      t = c, c = NULL;
    else if (PyTuple_Check(c)) {
      if (!PyTuple_CheckExact(c) || PyTuple_GET_SIZE(c) != 2) return -1;
      d = PyTuple_GET_ITEM(c, 1), c = PyTuple_GET_ITEM(c, 0);
    }
  }
  if (c == Py_None) c = NULL;
  if (d == Py_None) d = NULL;
  if (d && !c) return -1;
  v->lists = size <= FEW_RANKS ? v->few : PyMem_Malloc(2 * size * sizeof *v->lists);
  if (!v->lists) return -1;
  int64_t *counts = v->lists, *displs = v->lists + size;
  /* A list may change when the buffer or an integer is asked for, which may run Python. */
  Py_INCREF(b), Py_XINCREF(c), Py_XINCREF(d), Py_XINCREF(t);
  int rc = -1;
  if ((!c || read_integers(c, size, counts) == 0) && (!d || read_integers(d, size, displs) == 0) &&
      parse_buffer(b, t, writable, &v->s) == 0)
    rc = 0, v->held = 1;
  Py_DECREF(b), Py_XDECREF(c), Py_XDECREF(d), Py_XDECREF(t);
  if (rc < 0) return -1;
  int64_t end = 0, all = v->s.count;
  for (int64_t i = 0; i < size; i++) {
    if (!c) counts[i] = all / size + (i < all % size);
    if (!d) displs[i] = end;
    if (counts[i] < 0 || (counts[i] > 0 && (displs[i] < 0 || displs[i] > all || counts[i] > all - displs[i])))
      return -1;
    end += counts[i];
  }
  v->side = (gm_side){(int64_t)(intptr_t)v->s.view.buf, v->s.type, counts, displs, size, size};
  return 0;
}

/* What a rank gives for one side. */
enum {
  NO_SIDE,  /* nothing: the argument is not looked at */
  IN_PLACE, /* likewise */
  ONE_PART,
  PARTS
};

static int read_vector(PyObject *o, int what, int64_t size, int writable, vector *v) {
  v->held = 0, v->lists = NULL, v->side = (gm_side){0};
  switch (what) {
    case IN_PLACE:
      v->side.addr = GM_IN_PLACE;
      return 0;
    case ONE_PART:
      return read_one(o, writable, v);
    case PARTS:
      return read_parts(o, size, writable, v);
  }
  return 0;
}

static PyObject *run(HOT, int which, int kind, int64_t root, int send, PyObject *sendbuf, int recv, PyObject *recvbuf,
                     int64_t size) {
  vector s, r;
  int64_t pending = 0, h = ((CommObject *)self)->h;
  int code, rooted = kind == GM_GATHERV || kind == GM_SCATTERV;
  gm_status st;
  r.held = 0, r.lists = NULL;
  if (read_vector(sendbuf, send, size, 0, &s) < 0 || read_vector(recvbuf, recv, size, 1, &r) < 0) {
    drop_vector(&s), drop_vector(&r);
    FALL_BACK(which);
  }
  if (TRACING) {
    const vector *v = s.held ? &s : &r;
    int64_t items = 0;
    for (int64_t i = 0; i < v->side.ncounts; i++) items += v->side.counts[i];
    NOTE_COMM(h, rooted ? root : TRACE_NO_PEER, -1, v->held ? items * v->s.size : 0);
  }
  BLOCKING(code, pending, &st, gm_collv_blocking(kind, h, &s.side, &r.side, root, &pending));
  if (s.held) release_spec(code, pending, &s.s);
  if (r.held) release_spec(code, pending, &r.s);
  s.held = r.held = 0;
  drop_vector(&s), drop_vector(&r);
  return none_or(code);
}

static PyObject *comm_gatherv(HOT) {
  static const char *const names[] = {"sendbuf", "recvbuf", "root", NULL};
  PyObject *a[3];
  int64_t root = 0;
  const gm_comm_shape *shape = one_group((CommObject *)self);
  if (!shape || match_args(names, 2, args, n, kwnames, a) < 0 || parse_small_int(a[2], &root) < 0)
    FALL_BACK(CALL_GATHERV);
  int is_root = root == shape->rank;
  return run(self, args, n, kwnames, CALL_GATHERV, GM_GATHERV, root, is_root && a[0] == in_place ? IN_PLACE : ONE_PART,
             a[0], is_root ? PARTS : NO_SIDE, a[1], shape->size);
}

static PyObject *comm_scatterv(HOT) {
  static const char *const names[] = {"sendbuf", "recvbuf", "root", NULL};
  PyObject *a[3];
  int64_t root = 0;
  const gm_comm_shape *shape = one_group((CommObject *)self);
  if (!shape || match_args(names, 2, args, n, kwnames, a) < 0 || parse_small_int(a[2], &root) < 0)
    FALL_BACK(CALL_SCATTERV);
  int is_root = root == shape->rank;
  return run(self, args, n, kwnames, CALL_SCATTERV, GM_SCATTERV, root, is_root ? PARTS : NO_SIDE, a[0],
             is_root && a[1] == in_place ? IN_PLACE : ONE_PART, a[1], shape->size);
}

static PyObject *all_to_all(HOT, int which, int kind, int send) {
  static const char *const names[] = {"sendbuf", "recvbuf", NULL};
  PyObject *a[2];
  const gm_comm_shape *shape = one_group((CommObject *)self);
  if (!shape || match_args(names, 2, args, n, kwnames, a) < 0) FALL_BACK(which);
  return run(self, args, n, kwnames, which, kind, 0, a[0] == in_place ? IN_PLACE : send, a[0], PARTS, a[1],
             shape->size);
}

static PyObject *comm_allgatherv(HOT) {
  return all_to_all(self, args, n, kwnames, CALL_ALLGATHERV, GM_ALLGATHERV, ONE_PART);
}

static PyObject *comm_alltoallv(HOT) { return all_to_all(self, args, n, kwnames, CALL_ALLTOALLV, GM_ALLTOALLV, PARTS); }

TRACED(comm_gatherv, CALL_GATHERV)
TRACED(comm_scatterv, CALL_SCATTERV)
TRACED(comm_allgatherv, CALL_ALLGATHERV)
TRACED(comm_alltoallv, CALL_ALLTOALLV)
PyMethodDef comm_collv_methods[] = {HOT_METHOD("Gatherv", traced_comm_gatherv, "($self, sendbuf, recvbuf, root=0)"),
                                    HOT_METHOD("Scatterv", traced_comm_scatterv, "($self, sendbuf, recvbuf, root=0)"),
                                    HOT_METHOD("Allgatherv", traced_comm_allgatherv, "($self, sendbuf, recvbuf)"),
                                    HOT_METHOD("Alltoallv", traced_comm_alltoallv, "($self, sendbuf, recvbuf)"),
                                    {0}};
