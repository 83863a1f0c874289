/* The raw calls of collectives among the neighbors of a topology. Python tells a communicator its edges once; from then on
   the usual calls with equal counts are parsed here. */
#include "object.h"
#include "raw.h"

#include "_cgo_export.h"

/* set_neighbors(comm, sources, destinations, arrivals): the edges of this rank. See mpi.SetNeighbors. */
static PyObject *raw_set_neighbors(ARGS) {
  int64_t *lists[3] = {0};
  Py_ssize_t lengths[3] = {0};
  int code = RAISED;
  if (n != 4 || !PyObject_TypeCheck(args[0], CommType))
    return PyErr_Format(PyExc_TypeError, "set_neighbors takes a Comm and three lists");
  CommObject *comm = (CommObject *)args[0];
  int64_t h = comm->h;
  if (check_process() < 0) return NULL;
  for (int i = 0; i < 3; i++)
    if (!(lists[i] = integer_array(args[i + 1], &lengths[i]))) goto end;
  code = gm_set_neighbors(h, lists[0], lengths[0], lists[1], lengths[1], lists[2], lengths[2]);
  if (code == 0) comm->placed = h, comm->indegree = lengths[0], comm->outdegree = lengths[1];
end:
  for (int i = 0; i < 3; i++) PyMem_Free(lists[i]);
  return none_or(code);
}

/* One message, or one part for each of some edges. */
static int read_parts(PyObject *o, int64_t edges, int writable, spec *s) {
  /* an explicit count is that of a part, which Python compares with the buffer */
  if (!edges || ((PyList_CheckExact(o) || PyTuple_CheckExact(o)) && PySequence_Fast_GET_SIZE(o) > 2)) return -1;
  if (parse_spec(o, writable, s) < 0) return -1;
  if (s->count % edges == 0) {
    s->count /= edges;
    return 0;
  }
  PyBuffer_Release(&s->view);
  return -1;
}

/* Of a nonblocking call its request. */
static PyObject *outcome(int code, int64_t req, int nonblocking, spec *s, spec *r) {
  if (nonblocking && code == 0) return new_request_of(req, s, r);
  if (nonblocking) {
    PyBuffer_Release(&s->view);
    PyBuffer_Release(&r->view);
  } else {
    release_spec(code, req, s);
    release_spec(code, req, r);
  }
  return none_or(code);
}

/* The arguments (comm, kind, nonblocking, sendbuf, recvbuf) of a call, but for the buffers. */
typedef struct {
  int64_t h, in, out; /* of the communicator, whose object may change when a buffer is asked for */
  int kind, nonblocking;
} neighbor_call;

/* Reads them. Returns 1, or 0 with what the call returns if it is not for C: NotImplemented, or NULL with an exception. */
static int read_call(const char *name, PyObject *const *args, Py_ssize_t n, neighbor_call *c, PyObject **result) {
  int64_t a[2];
  *result = NULL;
  if (n != 5 || !PyObject_TypeCheck(args[0], CommType)) {
    PyErr_Format(PyExc_TypeError, "%s takes a Comm and 4 arguments", name);
    return 0;
  }
  if (integers(name, args + 1, 2, 2, a) < 0) return 0;
  const CommObject *comm = (const CommObject *)args[0];
  *c = (neighbor_call){comm->h, comm->indegree, comm->outdegree, (int)a[0], (int)a[1]};
  if (comm->h && comm->placed == comm->h && request_class) return 1;
  *result = Py_NewRef(Py_NotImplemented);
  return 0;
}

/* For what is unusual or wrong in a buffer. */
static PyObject *not_for_c(void) { return PyErr_Occurred() ? NULL : Py_NewRef(Py_NotImplemented); }

/* Makes CALL, which moves bytes and has req, and sets code. */
#define EXCHANGING(c, code, req, bytes, CALL) \
  do {                                        \
    gm_status unused;                         \
    if (!(c).nonblocking)                     \
      BLOCKING(code, req, &unused, CALL);     \
    else if ((bytes) > LONG_COPY)             \
      WITHOUT_GIL(code = CALL);               \
    else                                      \
      code = CALL;                            \
  } while (0)

/* neighbor(comm, kind, nonblocking, sendbuf, recvbuf): a call with equal counts. It returns NotImplemented for what is unusual or
   wrong, before anything has begun. */
static PyObject *raw_neighbor(ARGS) {
  int64_t req = 0;
  spec s, r;
  int code;
  neighbor_call c;
  PyObject *result;
  if (!read_call("neighbor", args, n, &c, &result)) return result;
  if (read_parts(args[3], c.kind == GM_NEIGHBOR_ALLTOALL ? c.out : 1, 0, &s) < 0) return not_for_c();
  if (read_parts(args[4], c.in, 1, &r) < 0) {
    PyBuffer_Release(&s.view);
    return not_for_c();
  }
  gm_operand send = {(int64_t)(intptr_t)s.view.buf, s.count, s.type},
             recv = {(int64_t)(intptr_t)r.view.buf, r.count, r.type};
  NOTE_COMM(c.h, TRACE_NO_PEER, -1, s.count * s.size);
  EXCHANGING(c, code, req, s.count * s.size * c.out, gm_neighbor(c.kind, c.h, send, recv, c.nonblocking, &req));
  return outcome(code, req, c.nonblocking, &s, &r);
}

/* Whether o is a list or a tuple of so many items. */
static int has_items(PyObject *o, Py_ssize_t n) {
  return (PyList_CheckExact(o) || PyTuple_CheckExact(o)) && PySequence_Fast_GET_SIZE(o) == n;
}

/* Reads the integers of a list or a tuple, every third word from out on. */
static int read_field(PyObject *o, Py_ssize_t n, int64_t *out) {
  for (Py_ssize_t i = 0; i < n; i++) {
    PyObject *item = PySequence_Fast_GET_ITEM(o, i);
    if (!PyLong_Check(item) || parse_int(item, &out[3 * i]) < 0) return -1;
  }
  return 0;
}

/* Where the parts of a buffer of count elements are that have so many elements, from so many elements on. */
static int place_parts(gm_operand *parts, Py_ssize_t n, const spec *s) {
  for (Py_ssize_t i = 0; i < n; i++) {
    int64_t count = parts[i].count, displ = count ? parts[i].addr : 0;
    if (count < 0 || count > s->count || displ < 0 || displ > s->count - count) return -1;
    parts[i] = (gm_operand){(int64_t)(intptr_t)s->view.buf + displ * s->size, count, s->type};
  }
  return 0;
}

/* A buffer with a part of its own for each edge, in one of the usual specifications: [buffer, counts], with a tuple of counts and
   displacements in place of counts, with a datatype at the end, or [buffer, counts, displacements, datatype]. Returns NULL for
   anything else. */
static gm_operand *read_vector(PyObject *o, Py_ssize_t edges, int writable, spec *s) {
  if (!PyList_CheckExact(o) && !PyTuple_CheckExact(o)) return NULL;
  Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
  if (n < 2 || n > 4) return NULL;
  PyObject *b = PySequence_Fast_GET_ITEM(o, 0), *counts = PySequence_Fast_GET_ITEM(o, 1);
  PyObject *displs = n == 4 ? PySequence_Fast_GET_ITEM(o, 2) : NULL,
           *t = n > 2 ? PySequence_Fast_GET_ITEM(o, n - 1) : NULL;
  if (n != 4 && PyTuple_CheckExact(counts)) {
    if (PyTuple_GET_SIZE(counts) != 2) return NULL;
    displs = PyTuple_GET_ITEM(counts, 1), counts = PyTuple_GET_ITEM(counts, 0);
  }
  if (!has_items(counts, edges) || (displs && !has_items(displs, edges)) ||
      (t && (!PyObject_TypeCheck(t, DatatypeType) ||
             ((DatatypeObject *)t)->shape.extent != ((DatatypeObject *)t)->shape.size)))
    return NULL;
  gm_operand *parts = PyMem_Calloc(edges + 1, sizeof *parts);
  if (!parts) return NULL;
  int fits = read_field(counts, edges, &parts->count) == 0 && (!displs || read_field(displs, edges, &parts->addr) == 0);
  for (Py_ssize_t i = 1; i < edges && fits && !displs; i++)
    fits = !__builtin_add_overflow(parts[i - 1].addr, parts[i - 1].count, &parts[i].addr);
  /* A list may change when the buffer is asked for, which may run Python. */
  PyObject *plain = !fits ? NULL : t ? PyTuple_Pack(2, b, t) : Py_NewRef(b);
  fits = plain && parse_spec(plain, writable, s) == 0;
  Py_XDECREF(plain);
  if (fits && place_parts(parts, edges, s) < 0) {
    PyBuffer_Release(&s->view);
    fits = 0;
  }
  if (fits) return parts;
  PyMem_Free(parts);
  return NULL;
}

/* One message, for each edge. */
static gm_operand *read_same(PyObject *o, Py_ssize_t edges, spec *s) {
  if (read_parts(o, 1, 0, s) < 0) return NULL;
  gm_operand *parts = PyMem_Calloc(edges + 1, sizeof *parts);
  if (!parts) PyBuffer_Release(&s->view);
  for (Py_ssize_t i = 0; parts && i < edges; i++)
    parts[i] = (gm_operand){(int64_t)(intptr_t)s->view.buf, s->count, s->type};
  return parts;
}

/* neighborv(comm, kind, nonblocking, sendbuf, recvbuf): likewise with different counts. */
static PyObject *raw_neighborv(ARGS) {
  int64_t req = 0, items = 0;
  spec s, r;
  int code;
  neighbor_call c;
  PyObject *result;
  if (!read_call("neighborv", args, n, &c, &result)) return result;
  gm_operand *send =
      c.kind == GM_NEIGHBOR_ALLTOALL ? read_vector(args[3], c.out, 0, &s) : read_same(args[3], c.out, &s);
  gm_operand *recv = send ? read_vector(args[4], c.in, 1, &r) : NULL;
  if (!recv) {
    if (send) PyBuffer_Release(&s.view);
    PyMem_Free(send);
    return not_for_c();
  }
  for (int64_t i = 0; i < c.out; i++) items += send[i].count;
  NOTE_COMM(c.h, TRACE_NO_PEER, -1, items * s.size);
  EXCHANGING(c, code, req, items * s.size,
             gm_neighbor_parts(c.kind, c.h, send, c.out, recv, c.in, c.nonblocking, &req));
  PyMem_Free(send);
  PyMem_Free(recv);
  return outcome(code, req, c.nonblocking, &s, &r);
}

/* A side with a part for each edge: lists of addresses, counts and datatypes, one after the other. */
static gm_operand *read_side(PyObject *o, Py_ssize_t *parts) {
  gm_operand *side = (gm_operand *)integer_array(o, parts);
  if (side && *parts % 3) {
    PyErr_Format(PyExc_TypeError, "expecting an address, a count and a datatype for each edge");
    PyMem_Free(side);
    return NULL;
  }
  *parts /= 3;
  return side;
}

/* neighbor_parts(comm, kind, send, recv, holder), to be called by one of those below. how: what it begins. */
enum { WAIT, START, PREPARE };
static PyObject *neighbor_parts(PyObject *const *args, Py_ssize_t n, int how) {
  int64_t a[2], req = 0;
  Py_ssize_t ns = 0, nr = 0;
  int code = RAISED;
  gm_status st;
  PyObject *out = NULL;
  if (n != 5) return PyErr_Format(PyExc_TypeError, "neighbor_parts takes 5 arguments");
  if (integers("neighbor_parts", args, 2, 2, a) < 0) return NULL;
  gm_operand *s = read_side(args[2], &ns), *r = s ? read_side(args[3], &nr) : NULL;
  if (!r) goto end;
  if (TRACING) {
    int64_t bytes = 0;
    for (Py_ssize_t i = 0; i < ns; i++) bytes += trace_bytes(s[i].datatype, s[i].count);
    trace_note(TRACE_CALL_COMM, a[0], TRACE_NO_PEER, -1, bytes);
  }
  switch (how) {
    case START:
      WITHOUT_GIL(code = gm_neighbor_parts((int)a[1], a[0], s, ns, r, nr, 1, &req));
      out = started_or(code, req, args[4]);
      break;
    case PREPARE:
      code = gm_neighbor_init((int)a[1], a[0], s, ns, r, nr, &req);
      out = handle_or(code, req);
      break;
    default:
      BLOCKING(code, req, &st, gm_neighbor_parts((int)a[1], a[0], s, ns, r, nr, 0, &req));
      if (code) { /* a peer may still read or fill the memory */
        Py_INCREF(args[4]);
        keep_until_over(req, args[4]);
      }
      out = none_or(code);
  }
end:
  PyMem_Free(s);
  PyMem_Free(r);
  return out;
}

static PyObject *raw_neighbor_blocking(ARGS) { return neighbor_parts(args, n, WAIT); }
static PyObject *raw_neighbor_parts(ARGS) { return neighbor_parts(args, n, START); }
static PyObject *raw_neighbor_init(ARGS) { return neighbor_parts(args, n, PREPARE); }

PyMethodDef raw_neighbor_methods[] = {F(set_neighbors),  F(neighbor),      F(neighborv), F(neighbor_blocking),
                                      F(neighbor_parts), F(neighbor_init), {0}};
