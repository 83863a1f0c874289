/* The raw calls of point-to-point communication: sends, receives, probes. */
#include "raw.h"
#include "_cgo_export.h"

/* p2p(kind, comm, address, count, datatype, peer, tag, holder) */
static PyObject *raw_p2p(ARGS) {
  int64_t a[7], req = 0;
  int code;
  if (n != 8) return PyErr_Format(PyExc_TypeError, "p2p takes 8 arguments");
  if (integers("p2p kind communicator buffer count datatype rank tag", args, 7, 7, a) < 0) return NULL;
  if (TRACING) trace_note(TRACE_CALL_COMM, a[1], a[5], a[6], trace_bytes(a[4], a[3]));
  WITHOUT_GIL(code = gm_p2p((int)a[0], a[1], a[2], a[3], a[4], a[5], a[6], &req));
  return started_or(code, req, args[7]);
}

/* p2p_init(kind, comm, address, count, datatype, peer, tag) -> a persistent request */
static PyObject *raw_p2p_init(ARGS) {
  int64_t a[7], req = 0;
  if (integers("p2p_init kind communicator buffer count datatype rank tag", args, n, 7, a) < 0) return NULL;
  if (TRACING) trace_note(TRACE_CALL_COMM, a[1], a[5], a[6], trace_bytes(a[4], a[3]));
  int code = gm_p2p_init((int)a[0], a[1], a[2], a[3], a[4], a[5], a[6], &req);
  return handle_or(code, req);
}

/* sendrecv(comm, address, count, datatype, dest, tag, address, count, datatype, source, tag, status, holder) */
static PyObject *raw_sendrecv(ARGS) {
  int64_t a[11], pending = 0;
  gm_status *st, own;
  int code;
  if (n != 13) return PyErr_Format(PyExc_TypeError, "sendrecv takes 13 arguments");
  if (integers("sendrecv communicator buffer count datatype dest sendtag buffer count datatype source recvtag", args,
               11, 11, a) < 0 ||
      status_arg(args[11], &st) < 0)
    return NULL;
  if (!st) st = &own;
  if (TRACING) trace_note(TRACE_CALL_COMM, a[0], a[4], a[5], trace_bytes(a[3], a[2]));
  BLOCKING(code, pending, st, gm_sendrecv(a[0], a + 1, a + 6, st, &pending));
  if (code) { /* peers may still read and write there */
    Py_INCREF(args[12]);
    keep_until_over(pending, args[12]);
  }
  return none_or(code);
}

/* isendrecv(comm, address, count, datatype, dest, tag, address, count, datatype, source, tag, holder) */
static PyObject *raw_isendrecv(ARGS) {
  int64_t a[11], req = 0;
  int code;
  if (n != 12) return PyErr_Format(PyExc_TypeError, "isendrecv takes 12 arguments");
  if (integers("isendrecv", args, 11, 11, a) < 0) return NULL;
  if (TRACING) trace_note(TRACE_CALL_COMM, a[0], a[4], a[5], trace_bytes(a[3], a[2]));
  WITHOUT_GIL(code = gm_isendrecv(a[0], a + 1, a + 6, &req));
  return started_or(code, req, args[11]);
}

/* probe(comm, source, tag, status), and mprobe, which returns the message it has matched. */
static PyObject *probe(PyObject *const *args, Py_ssize_t n, int64_t *msg) {
  int64_t a[3], wait = 0;
  gm_status *st, own;
  int code;
  if (n != 4) return PyErr_Format(PyExc_TypeError, "probe takes 4 arguments");
  if (integers("probe communicator source tag", args, 3, 3, a) < 0 || status_arg(args[3], &st) < 0) return NULL;
  NOTE_COMM(a[0], a[1], a[2], 0);
  RESTARTING(code, gm_probe(a[0], a[1], a[2], st ? st : &own, msg, &wait));
  if (code == RAISED) gm_end_probe(wait);
  if (code) return none_or(code);
  if (msg) return PyLong_FromLongLong(*msg);
  Py_RETURN_NONE;
}

static PyObject *raw_probe(ARGS) { return probe(args, n, NULL); }
static PyObject *raw_mprobe(ARGS) {
  int64_t msg = 0;
  return probe(args, n, &msg);
}

/* iprobe and improbe likewise, without waiting: False or 0 if there is no message. */
static PyObject *iprobe(PyObject *const *args, Py_ssize_t n, int64_t *msg) {
  int64_t a[3];
  gm_status *st, own;
  int found = 0;
  if (n != 4) return PyErr_Format(PyExc_TypeError, "iprobe takes 4 arguments");
  if (integers("iprobe communicator source tag", args, 3, 3, a) < 0 || status_arg(args[3], &st) < 0) return NULL;
  int code;
  NOTE_COMM(a[0], a[1], a[2], 0);
  WITHOUT_GIL(code = gm_iprobe(a[0], a[1], a[2], st ? st : &own, msg, &found));
  if (code) return raise_code(code);
  if (msg) return PyLong_FromLongLong(found ? *msg : 0);
  return PyBool_FromLong(found);
}

static PyObject *raw_iprobe(ARGS) { return iprobe(args, n, NULL); }
static PyObject *raw_improbe(ARGS) {
  int64_t msg = 0;
  return iprobe(args, n, &msg);
}

/* mrecv(message, address, count, datatype, holder) */
static PyObject *raw_mrecv(ARGS) {
  int64_t a[4], req = 0;
  int code;
  if (n != 5) return PyErr_Format(PyExc_TypeError, "mrecv takes 5 arguments");
  if (integers("mrecv", args, 4, 4, a) < 0) return NULL;
  WITHOUT_GIL(code = gm_mrecv(a[0], a[1], a[2], a[3], &req));
  return started_or(code, req, args[4]);
}

PyMethodDef raw_message_methods[] = {F(p2p),    F(p2p_init), F(sendrecv), F(isendrecv), F(probe),
                                     F(mprobe), F(iprobe),   F(improbe),  F(mrecv),     {0}};
