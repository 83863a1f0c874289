/* The raw calls of collective operations. The nonblocking ones return what they have started. */
#include "raw.h"
#include "_cgo_export.h"

/* Records a collective with equal counts; the root only where there is one. */
static void note_coll(const int64_t *a) {
  int rooted = a[0] == GM_BCAST || a[0] == GM_GATHER || a[0] == GM_SCATTER || a[0] == GM_REDUCE;
  int64_t bytes = a[2] != GM_IN_PLACE && a[3] > 0 ? trace_bytes(a[4], a[3]) : trace_bytes(a[7], a[6]);
  trace_note(TRACE_CALL_COMM, a[1], rooted ? a[9] : TRACE_NO_PEER, -1, bytes);
}

/* coll(kind, comm, address, count, datatype, address, count, datatype, op, root, holder) */
static PyObject *raw_coll(ARGS) {
  int64_t a[10], req = 0;
  int code;
  if (n != 11) return PyErr_Format(PyExc_TypeError, "coll takes 11 arguments");
  if (integers("coll kind communicator sendbuf count datatype recvbuf count datatype op root", args, 10, 10, a) < 0)
    return NULL;
  if (TRACING) note_coll(a);
  WITHOUT_GIL(code = gm_coll((int)a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], &req));
  return started_or(code, req, args[10]);
}

/* The same arguments; waits until the collective is complete. */
static PyObject *raw_coll_blocking(ARGS) {
  int64_t a[10], pending = 0;
  int code;
  gm_status st;
  if (n != 11) return PyErr_Format(PyExc_TypeError, "coll_blocking takes 11 arguments");
  if (integers("coll_blocking kind communicator sendbuf count datatype recvbuf count datatype op root", args, 10, 10,
               a) < 0)
    return NULL;
  if (TRACING) note_coll(a);
  BLOCKING(code, pending, &st,
           gm_coll_blocking((int)a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], &pending));
  if (code) { /* a peer may still read or fill the memory */
    Py_INCREF(args[10]);
    keep_until_over(pending, args[10]);
  }
  return none_or(code);
}

/* The arguments (kind, comm, saddr, scounts, sdispls, stype, raddr, rcounts, rdispls, rtype, root, holder). */
typedef struct {
  int64_t head[2], root, *lists[4];
  gm_side s, r;
} collv_args;

static void drop_collv(collv_args *c) {
  for (int i = 0; i < 4; i++) PyMem_Free(c->lists[i]);
}

/* Reads them, and records the call. Returns -1 with an exception. */
static int read_collv(PyObject *const *args, Py_ssize_t n, collv_args *c) {
  static const int where[4] = {3, 4, 7, 8};
  Py_ssize_t lengths[4] = {0};
  memset(c, 0, sizeof *c);
  if (n != 12) {
    PyErr_SetString(PyExc_TypeError, "collv takes 12 arguments");
    return -1;
  }
  if (integers("collv", args, 2, 2, c->head) < 0 || integers("collv", args + 2, 1, 1, &c->s.addr) < 0 ||
      integers("collv", args + 5, 1, 1, &c->s.type) < 0 || integers("collv", args + 6, 1, 1, &c->r.addr) < 0 ||
      integers("collv", args + 9, 1, 1, &c->r.type) < 0 || integers("collv root", args + 10, 1, 1, &c->root) < 0)
    return -1;
  for (int i = 0; i < 4; i++)
    if (args[where[i]] != Py_None && !(c->lists[i] = integer_array(args[where[i]], &lengths[i]))) {
      drop_collv(c);
      return -1;
    }
  c->s.counts = c->lists[0], c->s.displs = c->lists[1], c->s.ncounts = lengths[0], c->s.ndispls = lengths[1];
  c->r.counts = c->lists[2], c->r.displs = c->lists[3], c->r.ncounts = lengths[2], c->r.ndispls = lengths[3];
  if (TRACING) {
    const gm_side *side = c->s.addr != GM_IN_PLACE && c->s.ncounts ? &c->s : &c->r;
    int64_t items = 0;
    for (int64_t i = 0; i < side->ncounts; i++) items += side->counts[i];
    int rooted = c->head[0] == GM_GATHERV || c->head[0] == GM_SCATTERV;
    trace_note(TRACE_CALL_COMM, c->head[1], rooted ? c->root : TRACE_NO_PEER, -1, trace_bytes(side->type, items));
  }
  return 0;
}

static PyObject *raw_collv(ARGS) {
  collv_args c;
  int64_t req = 0;
  int code;
  if (read_collv(args, n, &c) < 0) return NULL;
  WITHOUT_GIL(code = gm_collv((int)c.head[0], c.head[1], &c.s, &c.r, c.root, &req));
  drop_collv(&c);
  return started_or(code, req, args[11]);
}

/* The same arguments; waits until the collective is complete. */
static PyObject *raw_collv_blocking(ARGS) {
  collv_args c;
  int64_t pending = 0;
  int code;
  gm_status st;
  if (read_collv(args, n, &c) < 0) return NULL;
  BLOCKING(code, pending, &st, gm_collv_blocking((int)c.head[0], c.head[1], &c.s, &c.r, c.root, &pending));
  drop_collv(&c);
  if (code) { /* a peer may still read or fill the memory */
    Py_INCREF(args[11]);
    keep_until_over(pending, args[11]);
  }
  return none_or(code);
}

/* This defines raw_barrier. */
DEFINE_WAIT(barrier, 1, "", NOTE_COMM(a[0], TRACE_NO_PEER, -1, 0), gm_barrier(a[0], &pending))

PyMethodDef raw_coll_methods[] = {F(coll), F(coll_blocking), F(collv), F(collv_blocking), F(barrier), {0}};
