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

/* neighbor(comm, kind, nonblocking, sendbuf, recvbuf): a call with equal counts. It returns NotImplemented for what is unusual or
   wrong, before anything has begun. */
static PyObject *raw_neighbor(ARGS) {
  int64_t a[2], req = 0;
  spec s, r;
  int code;
  gm_status st;
  if (n != 5 || !PyObject_TypeCheck(args[0], CommType))
    return PyErr_Format(PyExc_TypeError, "neighbor takes a Comm and 4 arguments");
  CommObject *comm = (CommObject *)args[0];
  if (integers("neighbor", args + 1, 2, 2, a) < 0) return NULL;
  int64_t h = comm->h, kind = a[0], parts = kind == GM_NEIGHBOR_ALLTOALL ? comm->outdegree : 1;
  if (!h || comm->placed != h || !request_class || read_parts(args[3], parts, 0, &s) < 0) goto unusual;
  if (read_parts(args[4], comm->indegree, 1, &r) < 0) {
    PyBuffer_Release(&s.view);
    goto unusual;
  }
  gm_operand send = {(int64_t)(intptr_t)s.view.buf, s.count, s.type},
             recv = {(int64_t)(intptr_t)r.view.buf, r.count, r.type};
  NOTE_COMM(h, TRACE_NO_PEER, -1, s.count * s.size);
  if (!a[1])
    BLOCKING(code, req, &st, gm_neighbor((int)kind, h, send, recv, 0, &req));
  else if (s.count * s.size * comm->outdegree > LONG_COPY)
    WITHOUT_GIL(code = gm_neighbor((int)kind, h, send, recv, 1, &req));
  else
    code = gm_neighbor((int)kind, h, send, recv, 1, &req);
  return outcome(code, req, (int)a[1], &s, &r);
unusual:
  return PyErr_Occurred() ? NULL : Py_NewRef(Py_NotImplemented);
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

PyMethodDef raw_neighbor_methods[] = {F(set_neighbors),  F(neighbor),      F(neighbor_blocking),
                                      F(neighbor_parts), F(neighbor_init), {0}};
