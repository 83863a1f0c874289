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

/* collv(kind, comm, saddr, scounts, sdispls, stype, raddr, rcounts, rdispls, rtype, root, holder) */
static PyObject *collv(PyObject *const *args, Py_ssize_t n, int nonblocking) {
  int64_t head[2], s_addr, s_type, r_addr, r_type, root, req = 0;
  PyObject *out = NULL;
  if (n != 12) return PyErr_Format(PyExc_TypeError, "collv takes 12 arguments");
  if (integers("collv", args, 2, 2, head) < 0 || integers("collv", args + 2, 1, 1, &s_addr) < 0 ||
      integers("collv", args + 5, 1, 1, &s_type) < 0 || integers("collv", args + 6, 1, 1, &r_addr) < 0 ||
      integers("collv", args + 9, 1, 1, &r_type) < 0 || integers("collv root", args + 10, 1, 1, &root) < 0)
    return NULL;
  int64_t *lists[4] = {0};
  Py_ssize_t lengths[4] = {0};
  static const int where[4] = {3, 4, 7, 8};
  for (int i = 0; i < 4; i++)
    if (args[where[i]] != Py_None && !(lists[i] = integer_array(args[where[i]], &lengths[i]))) goto end;
  gm_side s = {s_addr, s_type, lists[0], lists[1], lengths[0], lengths[1]};
  gm_side r = {r_addr, r_type, lists[2], lists[3], lengths[2], lengths[3]};
  int code;
  if (TRACING) {
    const gm_side *side = s_addr != GM_IN_PLACE && s.ncounts ? &s : &r;
    int64_t items = 0;
    for (int64_t i = 0; i < side->ncounts; i++) items += side->counts[i];
    int rooted = head[0] == GM_GATHERV || head[0] == GM_SCATTERV;
    trace_note(TRACE_CALL_COMM, head[1], rooted ? root : TRACE_NO_PEER, -1, trace_bytes(side->type, items));
  }
  WITHOUT_GIL(code = gm_collv((int)head[0], head[1], &s, &r, root, nonblocking, &req));
  out = started_or(code, req, args[11]);
end:
  for (int i = 0; i < 4; i++) PyMem_Free(lists[i]);
  return out;
}

static PyObject *raw_collv(ARGS) { return collv(args, n, 1); }

/* Like collv, for a blocking call: it is to be waited for at once. */
static PyObject *raw_collv_blocking(ARGS) { return collv(args, n, 0); }

/* This defines raw_barrier. */
DEFINE_WAIT(barrier, 1, "", NOTE_COMM(a[0], TRACE_NO_PEER, -1, 0), gm_barrier(a[0], &pending))

PyMethodDef raw_coll_methods[] = {F(coll), F(coll_blocking), F(collv), F(collv_blocking), F(barrier), {0}};
