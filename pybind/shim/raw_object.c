/* The raw calls that move Python objects, which are pickles: bytes of any size. Each does in one call, without a buffer
   of Python's, what a program waits for. */
#include "raw.h"
#include "_cgo_export.h"

/* The handle of BYTE; set_byte(handle) tells it. */
static int64_t byte_type;

static PyObject *raw_set_byte(ARGS) {
  if (integers("set_byte", args, n, 1, &byte_type) < 0) return NULL;
  Py_RETURN_NONE;
}

/* Messages
   -------- */

/* send_object(kind, comm, pickle, dest, tag) */
static PyObject *raw_send_object(ARGS) {
  int64_t a[2], to[2], pending = 0;
  int code;
  gm_status st;
  Py_buffer view;
  if (n != 5) return PyErr_Format(PyExc_TypeError, "send_object takes 5 arguments");
  if (integers("send_object kind communicator", args, 2, 2, a) < 0 ||
      integers("send_object dest tag", args + 3, 2, 2, to) < 0 || PyObject_GetBuffer(args[2], &view, PyBUF_SIMPLE) < 0)
    return NULL;
  NOTE_COMM(a[1], to[0], to[1], view.len);
  BLOCKING(code, pending, &st,
           gm_blocking((int)a[0], a[1], (int64_t)(intptr_t)view.buf, view.len, byte_type, to[0], to[1], &st, &pending));
  if (code == 0)
    PyBuffer_Release(&view);
  else
    keep_view(pending, &view);
  return none_or(code);
}

/* Receives a matched message of st->bytes, and waits for it. */
static PyObject *received(int64_t message, gm_status *st) {
  int64_t req = 0;
  int code;
  PyObject *memory = PyBytes_FromStringAndSize(NULL, st->bytes);
  if (!memory) return NULL;
  WITHOUT_GIL(code = gm_mrecv(message, (int64_t)(intptr_t)PyBytes_AS_STRING(memory), st->bytes, byte_type, &req));
  if (code) {
    Py_DECREF(memory);
    return raise_code(code);
  }
  gm_blocks(req);
  gm_status own;
  code = wait_request(req, &own);
  if (code == RAISED) WITHOUT_GIL(gm_abandon(req, 1));
  if (code) {
    keep_until_over(req, memory);
    return none_or(code);
  }
  return memory;
}

/* recv_object(comm, source, tag, status) -> the pickle */
static PyObject *raw_recv_object(ARGS) {
  int64_t a[3], wait = 0, message = 0;
  gm_status *st, own;
  int code;
  if (n != 4) return PyErr_Format(PyExc_TypeError, "recv_object takes 4 arguments");
  if (integers("recv_object communicator source tag", args, 3, 3, a) < 0 || status_arg(args[3], &st) < 0) return NULL;
  NOTE_COMM(a[0], a[1], a[2], 0);
  if (!st) st = &own;
  RESTARTING(code, gm_probe(a[0], a[1], a[2], st, &message, &wait));
  return code ? none_or(code) : received(message, st);
}

/* Collectives
   -----------
   The first step of a collective of objects is one with a head for each rank: the size of the pickle, and the pickle
   itself if there is room. gocore/coll/objects.go has the second step. */
enum { SIZE_BYTES = 8 };

/* Writes the head of a pickle; reports whether it is long. -1: an exception. */
static int fill_head(char *head, int64_t bytes, PyObject *pickle) {
  Py_buffer view;
  if (PyObject_GetBuffer(pickle, &view, PyBUF_SIMPLE) < 0) return -1;
  int64_t size = view.len;
  int is_long = size > bytes - SIZE_BYTES;
  memcpy(head, &size, SIZE_BYTES);
  if (!is_long && size) memcpy(head + SIZE_BYTES, view.buf, size);
  PyBuffer_Release(&view);
  return is_long;
}

/* The pickle of a head, or its size if it is long. */
static PyObject *read_head(const char *head, int64_t bytes, int *more) {
  int64_t size;
  memcpy(&size, head, SIZE_BYTES);
  if (size >= 0 && size <= bytes - SIZE_BYTES) return PyBytes_FromStringAndSize(head + SIZE_BYTES, size);
  *more = 1;
  return PyLong_FromLongLong(size);
}

/* The bytes of the pickles in n heads, for a recording: the second step records the long ones. */
static int64_t short_bytes(const char *heads, int64_t bytes, Py_ssize_t n) {
  int64_t sum = 0, size;
  for (Py_ssize_t i = 0; i < n; i++) {
    memcpy(&size, heads + i * bytes, SIZE_BYTES);
    if (size <= bytes - SIZE_BYTES) sum += size;
  }
  return sum;
}

/* Whether the second step is for all ranks alike, who know all sizes. */
static int known_to_all(int kind) { return kind == GM_BCAST || kind == GM_ALLGATHER; }

static int second(int kind) {
  return kind == GM_GATHER ? GM_GATHER_OBJECTS : kind == GM_SCATTER ? GM_SCATTER_OBJECTS : GM_ALLTOALL_OBJECTS;
}

/* short_object(kind, comm) -> the size of the longest pickle that the first step brings */
static PyObject *raw_short_object(ARGS) {
  int64_t a[2], bytes = 0;
  if (integers("short_object", args, n, 2, a) < 0) return NULL;
  int code = gm_head_bytes((int)a[0], a[1], &bytes);
  return code ? none_or(code) : PyLong_FromLongLong(bytes - SIZE_BYTES);
}

/* exchange(kind, comm, pickles, parts, root, always) -> (list of parts, whether a second step is needed)

   pickles: what this rank sends, one or a list, None where it sends nothing. parts: how many it receives; those in the
   list are pickles, or sizes of long ones. always: the second step is taken in any case. Where it is not needed it is
   numbered. */
static PyObject *raw_exchange(ARGS) {
  int64_t a[2], b[3], pending = 0, bytes = 0;
  gm_status st;
  int code;
  if (n != 6) return PyErr_Format(PyExc_TypeError, "exchange takes 6 arguments");
  if (integers("exchange kind communicator", args, 2, 2, a) < 0 ||
      integers("exchange parts root always", args + 3, 3, 3, b) < 0)
    return NULL;
  int kind = (int)a[0], more = b[2] != 0, list = PyList_CheckExact(args[2]);
  if ((code = gm_head_bytes(kind, a[1], &bytes))) return raise_code(code);
  Py_ssize_t sent = args[2] == Py_None ? 0 : list ? PyList_GET_SIZE(args[2]) : 1, parts = b[0];
  Py_ssize_t apart = kind == GM_BCAST ? 0 : sent; /* a broadcast sends from where the others receive */
  PyObject *memory = PyBytes_FromStringAndSize(NULL, (apart + parts) * bytes);
  if (!memory) return NULL;
  char *send = PyBytes_AS_STRING(memory), *recv = send + apart * bytes;
  for (Py_ssize_t i = 0; i < parts; i++) memset(recv + i * bytes, 0, SIZE_BYTES); /* a rank may receive nothing */
  for (Py_ssize_t i = 0; i < sent; i++) {
    int is_long = fill_head(send + i * bytes, bytes, list ? PyList_GET_ITEM(args[2], i) : args[2]);
    if (is_long < 0) {
      Py_DECREF(memory);
      return NULL;
    }
    more |= is_long;
  }
  if (TRACING) {
    int rooted = kind != GM_ALLGATHER && kind != GM_ALLTOALL;
    trace_note(TRACE_CALL_COMM, a[1], rooted ? b[1] : TRACE_NO_PEER, -1, short_bytes(send, bytes, sent));
  }
  BLOCKING(code, pending, &st,
           gm_exchange_heads(kind, a[1], (int64_t)(intptr_t)send, (int64_t)(intptr_t)recv, bytes, byte_type, b[1],
                             &pending));
  if (code) { /* a peer may still read or fill the memory */
    keep_until_over(pending, memory);
    return none_or(code);
  }
  if (TRACING && !sent) trace_note_bytes(short_bytes(recv, bytes, parts));
  PyObject *out = PyList_New(parts);
  for (Py_ssize_t i = 0; out && i < parts; i++) {
    PyObject *part = read_head(recv + i * bytes, bytes, &more);
    if (part)
      PyList_SET_ITEM(out, i, part);
    else
      Py_CLEAR(out);
  }
  Py_DECREF(memory);
  if (!out) return NULL;
  if (!more && !known_to_all(kind) && (code = gm_skip_objects(second(kind), a[1], b[1]))) {
    Py_DECREF(out);
    return raise_code(code);
  }
  return Py_BuildValue("NO", out, more ? Py_True : Py_False);
}

PyMethodDef raw_object_methods[] = {F(set_byte), F(send_object), F(recv_object), F(short_object), F(exchange), {0}};
