/* The calls that the Python implementations of gormapy.MPI use: integers in,
   requests out. docs are in the .pyi of the package and in gocore/mpi. */
#include "trace.h"
#include "_cgo_export.h"

PyObject *set_format(PyObject *self, PyObject *args);
PyObject *set_slow(PyObject *self, PyObject *args);
PyObject *set_op(PyObject *self, PyObject *args);

/* Says which argument is no integer: name is the call's, followed by its arguments'
   if programs give them ("probe communicator source tag"). */
static int no_integer(const char *name, Py_ssize_t i, PyObject *o) {
  if (!PyErr_ExceptionMatches(PyExc_TypeError)) return -1;
  const char *word = name;
  for (Py_ssize_t k = 0; k <= i && word; k++)
    if ((word = strchr(word, ' '))) word++;
  if (!word || !*word) return -1;
  char argument[32]; /* PyErr_Format can't take the length of a string */
  snprintf(argument, sizeof argument, "%.*s", (int)strcspn(word, " "), word);
  PyErr_Clear();
  PyErr_Format(PyExc_TypeError, "%s: expecting an integer, got %s", argument, Py_TYPE(o)->tp_name);
  return -1;
}

/* Converts n arguments to integers. */
static int longs(const char *name, PyObject *const *args, Py_ssize_t n, Py_ssize_t want, int64_t *out) {
  if (n != want) {
    PyErr_Format(PyExc_TypeError, "%s: takes %zd arguments (%zd given)", name, want, n);
    return -1;
  }
  for (Py_ssize_t i = 0; i < want; i++) {
    out[i] = PyLong_AsLongLong(args[i]);
    if (out[i] == -1 && PyErr_Occurred()) return no_integer(name, i, args[i]);
  }
  return check_process();
}

/* The status to fill in, or NULL for None. */
static int status_arg(PyObject *o, gm_status **st) {
  *st = NULL;
  if (o == Py_None) return 0;
  if (!PyObject_TypeCheck(o, &StatusType)) {
    PyErr_Format(PyExc_TypeError, "status: expecting a Status or None, not %s", Py_TYPE(o)->tp_name);
    return -1;
  }
  *st = &((StatusObject *)o)->st;
  return 0;
}

#define ARGS PyObject *self, PyObject *const *args, Py_ssize_t n

static PyObject *setup(PyObject *self, PyObject *args) {
  PyObject *e, *r = NULL, *p = NULL, *ip = NULL;
  if (!PyArg_ParseTuple(args, "O|OOO", &e, &r, &p, &ip)) return NULL;
  Py_INCREF(e);
  Py_XSETREF(exception_class, e);
  Py_XINCREF(r);
  Py_XSETREF(request_class, r);
  Py_XINCREF(p);
  Py_XSETREF(prequest_class, p);
  Py_XINCREF(ip);
  Py_XSETREF(in_place, ip);
  Py_RETURN_NONE;
}

static PyObject *handle_or(int code, int64_t h) { return code ? raise_code(code) : PyLong_FromLongLong(h); }

/* The object for a request that keeps holder until it is finished or adopted. */
static PyObject *started(int code, int64_t req, PyObject *holder) {
  if (code) return raise_code(code);
  StartedObject *s = (StartedObject *)StartedType.tp_alloc(&StartedType, 0);
  if (!s) {
    Py_INCREF(holder); /* in use, and nobody is left to say when no more */
    return NULL;
  }
  s->h = req;
  Py_INCREF(holder);
  s->buf = holder;
  keep_sweep();
  return (PyObject *)s;
}

static StartedObject *started_arg(PyObject *o) {
  if (Py_TYPE(o) == &StartedType) return (StartedObject *)o;
  PyErr_Format(PyExc_TypeError, "expecting what a call has started, not %s", Py_TYPE(o)->tp_name);
  return NULL;
}

/* p2p(kind, comm, address, count, datatype, peer, tag, holder) */
static PyObject *raw_p2p(ARGS) {
  int64_t a[7], req = 0;
  int code;
  if (n != 8) return PyErr_Format(PyExc_TypeError, "p2p takes 8 arguments");
  if (longs("p2p kind communicator buffer count datatype rank tag", args, 7, 7, a) < 0) return NULL;
  if (TRACING) trace_note(TRACE_CALL_COMM, a[1], a[5], a[6], trace_bytes(a[4], a[3]));
  Py_BEGIN_ALLOW_THREADS code = gm_p2p((int)a[0], a[1], a[2], a[3], a[4], a[5], a[6], &req);
  Py_END_ALLOW_THREADS return started(code, req, args[7]);
}

/* adopt(request, started): the request owns it from here on. */
static PyObject *raw_adopt(ARGS) {
  StartedObject *s;
  if (n != 2 || !PyObject_TypeCheck(args[0], &RequestType)) return PyErr_Format(PyExc_TypeError, "adopt takes a Request and what was started");
  if (!(s = started_arg(args[1]))) return NULL;
  RequestObject *r = (RequestObject *)args[0];
  r->h = s->h;
  s->h = 0;
  Py_XSETREF(r->buf, s->buf);
  s->buf = NULL;
  Py_RETURN_NONE;
}

static PyObject *raw_p2p_init(ARGS) {
  int64_t a[7], req = 0;
  if (longs("p2p_init kind communicator buffer count datatype rank tag", args, n, 7, a) < 0) return NULL;
  if (TRACING) trace_note(TRACE_CALL_COMM, a[1], a[5], a[6], trace_bytes(a[4], a[3]));
  int code = gm_p2p_init((int)a[0], a[1], a[2], a[3], a[4], a[5], a[6], &req);
  return handle_or(code, req);
}

static PyObject *raw_start(ARGS) {
  int64_t a[1];
  int code;
  if (longs("start", args, n, 1, a) < 0) return NULL;
  Py_BEGIN_ALLOW_THREADS code = gm_start(a[0]);
  Py_END_ALLOW_THREADS return none_or(code);
}

/* Waits for a request, resuming after signals: a wait that Ctrl-C ends leaves
   the request as it is, for its owner to wait for again or to free. */
static int wait_request(int64_t req, gm_status *st) {
  int code;
  for (;;) {
    Py_BEGIN_ALLOW_THREADS code = gm_wait(req, st);
    Py_END_ALLOW_THREADS if (code != GM_INTERRUPTED) return code;
    if (PyErr_CheckSignals() < 0) return -2;
  }
}

static PyObject *raw_wait(ARGS) {
  int64_t a[1];
  gm_status *st, own;
  if (n != 2) return PyErr_Format(PyExc_TypeError, "wait takes 2 arguments");
  if (longs("wait", args, 1, 1, a) < 0 || status_arg(args[1], &st) < 0) return NULL;
  int code = wait_request(a[0], st ? st : &own);
  if (TRACING && code == 0) trace_note_status(st ? st : &own, 1);
  return none_or(code);
}

/* finish(started, status or None): wait for what a blocking call has started.
   Ctrl-C gives it up. */
static PyObject *raw_finish(ARGS) {
  gm_status *st, own;
  StartedObject *s;
  if (n != 2) return PyErr_Format(PyExc_TypeError, "finish takes 2 arguments");
  if (check_process() < 0 || !(s = started_arg(args[0])) || status_arg(args[1], &st) < 0) return NULL;
  int code = wait_request(s->h, st ? st : &own);
  if (code == -2) {
    Py_BEGIN_ALLOW_THREADS gm_abandon(s->h, 1);
    Py_END_ALLOW_THREADS
  }
  if (code) {
    PyObject *memory = s->buf;
    s->buf = NULL;
    keep_until_over(s->h, memory);
  }
  s->h = 0;
  if (TRACING && code == 0) trace_note_status(st ? st : &own, 0);
  return none_or(code);
}

static PyObject *raw_test(ARGS) {
  int64_t a[1];
  int done = 0;
  gm_status *st, own;
  if (n != 2) return PyErr_Format(PyExc_TypeError, "test takes 2 arguments");
  if (longs("test", args, 1, 1, a) < 0 || status_arg(args[1], &st) < 0) return NULL;
  int code;
  Py_BEGIN_ALLOW_THREADS code = gm_test(a[0], st ? st : &own, &done);
  Py_END_ALLOW_THREADS if (TRACING && done && !code) trace_note_status(st ? st : &own, 1);
  return code ? raise_code(code) : PyBool_FromLong(done);
}

static PyObject *raw_request_status(ARGS) {
  int64_t a[1];
  int done = 0;
  gm_status *st, own;
  if (n != 2) return PyErr_Format(PyExc_TypeError, "request_status takes 2 arguments");
  if (longs("request_status", args, 1, 1, a) < 0 || status_arg(args[1], &st) < 0) return NULL;
  int code = gm_request_status(a[0], st ? st : &own, &done);
  return code ? raise_code(code) : PyBool_FromLong(done);
}

/* A sequence of integers as an array; free with PyMem_Free. The __index__ of one may change
   the list: this is what was in it. */
static int64_t *array(PyObject *seq, Py_ssize_t *count) {
  PyObject *fast = PySequence_Fast(seq, "expecting a sequence of integers");
  if (fast && PyList_Check(fast)) Py_SETREF(fast, PyList_AsTuple(fast));
  if (!fast) return NULL;
  *count = PySequence_Fast_GET_SIZE(fast);
  int64_t *out = PyMem_Malloc((*count + 1) * sizeof *out);
  if (!out) {
    Py_DECREF(fast);
    PyErr_NoMemory();
    return NULL;
  }
  for (Py_ssize_t i = 0; i < *count; i++) {
    PyObject *v = PyNumber_Index(PySequence_Fast_GET_ITEM(fast, i));
    out[i] = v ? PyLong_AsLongLong(v) : -1;
    Py_XDECREF(v);
    if (out[i] == -1 && PyErr_Occurred()) {
      Py_DECREF(fast);
      PyMem_Free(out);
      return NULL;
    }
  }
  Py_DECREF(fast);
  return out;
}

static gm_status *status_at(PyObject *list, Py_ssize_t i) {
  if (list == NULL || list == Py_None || !PyList_Check(list) || i >= PyList_GET_SIZE(list)) return NULL;
  PyObject *o = PyList_GET_ITEM(list, i);
  return PyObject_TypeCheck(o, &StatusType) ? &((StatusObject *)o)->st : NULL;
}

/* What the calls for several requests take: their handles, as an array to be freed with
   PyMem_Free, and a list of as many codes, each None until its request has ended. */
static int64_t *several(PyObject *const *args, Py_ssize_t n, Py_ssize_t *count) {
  if (n != 3) {
    PyErr_Format(PyExc_TypeError, "takes 3 arguments (%zd given)", n);
    return NULL;
  }
  if (check_process() < 0) return NULL;
  int64_t *reqs = array(args[0], count);
  if (reqs && (!PyList_CheckExact(args[2]) || PyList_GET_SIZE(args[2]) != *count)) {
    PyMem_Free(reqs);
    PyErr_Format(PyExc_TypeError, "expecting a list of %zd codes", *count);
    return NULL;
  }
  return reqs;
}

/* Request i has ended, with a code. */
static void ended(PyObject *codes, Py_ssize_t i, int code) {
  PyObject *value = PyLong_FromLong(code);
  if (!value || PyList_SetItem(codes, i, value) < 0) PyErr_Clear();
}

/* waitall(requests, statuses or None, codes). On the first error the rest is still
   waited for, then that error is raised. None has ended if Python code that a signal
   has run raises an exception while one is in progress. */
static PyObject *raw_waitall(ARGS) {
  Py_ssize_t count;
  int first = 0;
  int64_t *reqs = several(args, n, &count);
  if (!reqs) return NULL;
  for (int code;;) {
    Py_BEGIN_ALLOW_THREADS code = gm_await(reqs, (int)count);
    Py_END_ALLOW_THREADS if (code != GM_INTERRUPTED) break;
    if (PyErr_CheckSignals() < 0) {
      PyMem_Free(reqs);
      return NULL;
    }
  }
  for (Py_ssize_t i = 0; i < count; i++) {
    gm_status own, *st = status_at(args[1], i);
    int code = wait_request(reqs[i], st ? st : &own);
    if (code == -2) {
      PyMem_Free(reqs);
      return NULL;
    }
    ended(args[2], i, code);
    if (code && !first) first = code;
  }
  PyMem_Free(reqs);
  return none_or(first);
}

/* testall(requests, statuses or None, codes): True if all are complete, and then all
   are finished. */
static PyObject *raw_testall(ARGS) {
  Py_ssize_t count;
  int code = 0, all = 1;
  int64_t *reqs = several(args, n, &count);
  if (!reqs) return NULL;
  gm_status own;
  for (Py_ssize_t i = 0; i < count && all && !code; i++) {
    int done = 0;
    code = gm_request_status(reqs[i], &own, &done);
    all = done;
    if (code) {
      gm_status *st = status_at(args[1], i);
      if (st) st->error = code & 0xff;
      ended(args[2], i, code);
    }
  }
  for (Py_ssize_t i = 0; i < count && all; i++) {
    gm_status *st = status_at(args[1], i);
    int done = 0, c = gm_test(reqs[i], st ? st : &own, &done);
    if (c || done) ended(args[2], i, c);
    if (c && !code) code = c;
  }
  PyMem_Free(reqs);
  return code ? raise_code(code) : PyBool_FromLong(all);
}

/* waitany(requests, status, codes) -> index */
static PyObject *raw_waitany(ARGS) {
  Py_ssize_t count;
  int code, index = -1;
  gm_status *st, own;
  int64_t *reqs = several(args, n, &count);
  if (!reqs) return NULL;
  if (status_arg(args[1], &st) < 0) {
    PyMem_Free(reqs);
    return NULL;
  }
  for (;;) {
    Py_BEGIN_ALLOW_THREADS code = gm_waitany(reqs, (int)count, st ? st : &own, &index);
    Py_END_ALLOW_THREADS if (code != GM_INTERRUPTED) break;
    if (PyErr_CheckSignals() < 0) {
      PyMem_Free(reqs);
      return NULL;
    }
  }
  PyMem_Free(reqs);
  if (index >= 0) ended(args[2], index, code);
  return code ? raise_code(code) : PyLong_FromLong(index);
}

/* testany(requests, status, codes) -> (index, flag) */
static PyObject *raw_testany(ARGS) {
  Py_ssize_t count;
  gm_status *st, own;
  int64_t *reqs = several(args, n, &count);
  if (!reqs) return NULL;
  if (status_arg(args[1], &st) < 0) {
    PyMem_Free(reqs);
    return NULL;
  }
  int code = 0, index = -1, done = 0, active = 0;
  for (Py_ssize_t i = 0; i < count && !done && !code; i++) {
    if (reqs[i] == 0) continue;
    code = gm_request_status(reqs[i], &own, &done);
    /* An inactive persistent request is complete with an empty status. */
    if (done && own.source == -1 && own.tag == -1 && own.bytes == 0 && gm_request_inactive(reqs[i])) {
      done = 0;
      continue;
    }
    active = 1;
    if (done) {
      index = (int)i;
      code = gm_test(reqs[i], st ? st : &own, &done);
    }
    if (code || done) ended(args[2], i, code);
  }
  PyMem_Free(reqs);
  if (code) return raise_code(code);
  return Py_BuildValue("iO", index, done || !active ? Py_True : Py_False);
}

/* testsome(requests, statuses or None, codes) -> indices, or None if none is active;
   waitsome likewise, but at least one. The status of a request has its index in the list. */
static PyObject *some(PyObject *const *args, Py_ssize_t n, int wait) {
  Py_ssize_t count;
  int64_t *reqs = several(args, n, &count);
  if (!reqs) return NULL;
  int *indices = PyMem_Malloc((count + 1) * sizeof *indices), *codes = PyMem_Malloc((count + 1) * sizeof *codes);
  gm_status *sts = PyMem_Malloc((count + 1) * sizeof *sts), st;
  PyObject *out = NULL;
  int k = 0, code = 0;
  if (!indices || !codes || !sts) {
    PyErr_NoMemory();
    goto end;
  }
  code = gm_testsome(reqs, (int)count, indices, sts, codes, &k);
  while (code == 0 && k == 0 && wait) {
    int index = -1;
    Py_BEGIN_ALLOW_THREADS code = gm_waitany(reqs, (int)count, &st, &index);
    Py_END_ALLOW_THREADS if (code == GM_INTERRUPTED) {
      if (PyErr_CheckSignals() < 0) goto end;
      code = 0;
      continue;
    }
    if (index >= 0) {
      k = 1, indices[0] = index, sts[0] = st, codes[0] = code;
      code = 0;
    }
  }
  if (code) {
    raise_code(code);
    goto end;
  }
  if (k < 0) {
    out = Py_None;
    Py_INCREF(out);
    goto end;
  }
  for (int i = 0; i < k && !code; i++) code = codes[i];
  for (int i = 0; i < k; i++) {
    gm_status *to = status_at(args[1], indices[i]);
    if (to) *to = sts[i];
    ended(args[2], indices[i], codes[i]);
  }
  if (code) {
    raise_code(code);
    goto end;
  }
  out = PyList_New(k);
  for (int i = 0; out && i < k; i++) PyList_SET_ITEM(out, i, PyLong_FromLong(indices[i]));
end:
  PyMem_Free(reqs);
  PyMem_Free(indices);
  PyMem_Free(codes);
  PyMem_Free(sts);
  return out;
}

static PyObject *raw_waitsome(ARGS) { return some(args, n, 1); }
static PyObject *raw_testsome(ARGS) { return some(args, n, 0); }

#define ONE(name, expr)                                  \
  static PyObject *raw_##name(ARGS) {                    \
    int64_t a[1];                                        \
    if (longs(#name, args, n, 1, a) < 0) return NULL;    \
    return none_or(expr);                                \
  }

/* free(request): what it stands for goes on, and keeps its memory. */
static PyObject *raw_free(ARGS) {
  if (n != 1 || !PyObject_TypeCheck(args[0], &RequestType)) return PyErr_Format(PyExc_TypeError, "free takes a Request");
  if (check_process() < 0) return NULL;
  RequestObject *r = (RequestObject *)args[0];
  int64_t h = r->h;
  PyObject *memory = r->buf;
  int code = gm_request_free(h);
  if (code) return raise_code(code);
  r->h = 0;
  r->buf = NULL;
  r->kind = 0;
  keep_until_over(h, memory);
  Py_RETURN_NONE;
}

/* retire(request, handle, failed): its operation has ended; see settle. */
static PyObject *raw_retire(ARGS) {
  int64_t h;
  if (n != 3 || !PyObject_TypeCheck(args[0], &RequestType)) return PyErr_Format(PyExc_TypeError, "retire takes a Request, a handle and whether it failed");
  if (longs("retire", args + 1, 1, 1, &h) < 0) return NULL;
  settle((RequestObject *)args[0], h, PyObject_IsTrue(args[2]));
  Py_RETURN_NONE;
}

/* kept() -> how many operations that nobody waits for keep memory. Like Test, it makes progress. */
static PyObject *raw_kept(PyObject *self, PyObject *noargs) {
  if (check_process() < 0) return NULL;
  Py_BEGIN_ALLOW_THREADS gm_progress();
  Py_END_ALLOW_THREADS
  keep_sweep();
  return PyLong_FromSsize_t(kept_count());
}

ONE(cancel, gm_cancel(a[0]))

static PyObject *raw_request_inactive(ARGS) {
  int64_t a[1];
  if (longs("request_inactive", args, n, 1, a) < 0) return NULL;
  return PyBool_FromLong(gm_request_inactive(a[0]));
}

/* sendrecv(comm, address, count, datatype, dest, tag, address, count, datatype, source, tag, status, holder) */
static PyObject *raw_sendrecv(ARGS) {
  int64_t a[11], pending = 0;
  gm_status *st, own;
  int code;
  if (n != 13) return PyErr_Format(PyExc_TypeError, "sendrecv takes 13 arguments");
  if (longs("sendrecv communicator buffer count datatype dest sendtag buffer count datatype source recvtag", args, 11, 11, a) < 0 || status_arg(args[11], &st) < 0) return NULL;
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
  if (longs("isendrecv", args, 11, 11, a) < 0) return NULL;
  if (TRACING) trace_note(TRACE_CALL_COMM, a[0], a[4], a[5], trace_bytes(a[3], a[2]));
  Py_BEGIN_ALLOW_THREADS code = gm_isendrecv(a[0], a + 1, a + 6, &req);
  Py_END_ALLOW_THREADS return started(code, req, args[11]);
}

static PyObject *probe(PyObject *const *args, Py_ssize_t n, int64_t *msg) {
  int64_t a[3], wait = 0;
  gm_status *st, own;
  int code;
  if (n != 4) return PyErr_Format(PyExc_TypeError, "probe takes 4 arguments");
  if (longs("probe communicator source tag", args, 3, 3, a) < 0 || status_arg(args[3], &st) < 0) return NULL;
  NOTE_COMM(a[0], a[1], a[2], 0);
  for (;;) {
    Py_BEGIN_ALLOW_THREADS code = gm_probe(a[0], a[1], a[2], st ? st : &own, msg, &wait);
    Py_END_ALLOW_THREADS if (code != GM_INTERRUPTED) break;
    if (PyErr_CheckSignals() < 0) return NULL;
  }
  if (code) return raise_code(code);
  if (msg) return PyLong_FromLongLong(*msg);
  Py_RETURN_NONE;
}

static PyObject *raw_probe(ARGS) { return probe(args, n, NULL); }
static PyObject *raw_mprobe(ARGS) {
  int64_t msg = 0;
  return probe(args, n, &msg);
}

static PyObject *iprobe(PyObject *const *args, Py_ssize_t n, int64_t *msg) {
  int64_t a[3];
  gm_status *st, own;
  int found = 0;
  if (n != 4) return PyErr_Format(PyExc_TypeError, "iprobe takes 4 arguments");
  if (longs("iprobe communicator source tag", args, 3, 3, a) < 0 || status_arg(args[3], &st) < 0) return NULL;
  int code;
  NOTE_COMM(a[0], a[1], a[2], 0);
  Py_BEGIN_ALLOW_THREADS code = gm_iprobe(a[0], a[1], a[2], st ? st : &own, msg, &found);
  Py_END_ALLOW_THREADS if (code) return raise_code(code);
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
  if (longs("mrecv", args, 4, 4, a) < 0) return NULL;
  Py_BEGIN_ALLOW_THREADS code = gm_mrecv(a[0], a[1], a[2], a[3], &req);
  Py_END_ALLOW_THREADS return started(code, req, args[4]);
}

/* file_io(kind, file, offset, address, count, datatype, holder) */
static PyObject *raw_file_io(ARGS) {
  int64_t a[6], req = 0;
  int code;
  if (n != 7) return PyErr_Format(PyExc_TypeError, "file_io takes 7 arguments");
  if (longs("file_io kind file offset buffer count datatype", args, 6, 6, a) < 0) return NULL;
  if (TRACING) trace_note_bytes(trace_bytes(a[5], a[4]));
  Py_BEGIN_ALLOW_THREADS code = gm_file_io((int)a[0], a[1], a[2], a[3], a[4], a[5], &req);
  Py_END_ALLOW_THREADS return started(code, req, args[6]);
}

/* Records a collective with equal counts; the root only where there is one. */
static void note_coll(const int64_t *a) {
  int rooted = a[0] == GM_BCAST || a[0] == GM_GATHER || a[0] == GM_SCATTER || a[0] == GM_REDUCE;
  int64_t bytes = a[2] != IN_PLACE && a[3] > 0 ? trace_bytes(a[4], a[3]) : trace_bytes(a[7], a[6]);
  trace_note(TRACE_CALL_COMM, a[1], rooted ? a[9] : TRACE_NO_PEER, -1, bytes);
}

/* coll(kind, comm, address, count, datatype, address, count, datatype, op, root, holder) */
static PyObject *raw_coll(ARGS) {
  int64_t a[10], req = 0;
  int code;
  if (n != 11) return PyErr_Format(PyExc_TypeError, "coll takes 11 arguments");
  if (longs("coll kind communicator sendbuf count datatype recvbuf count datatype op root", args, 10, 10, a) < 0) return NULL;
  if (TRACING) note_coll(a);
  Py_BEGIN_ALLOW_THREADS code = gm_coll((int)a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], &req);
  Py_END_ALLOW_THREADS return started(code, req, args[10]);
}

/* The same arguments; waits until the collective is complete. */
static PyObject *raw_coll_blocking(ARGS) {
  int64_t a[10], pending = 0;
  int code;
  gm_status st;
  if (n != 11) return PyErr_Format(PyExc_TypeError, "coll_blocking takes 11 arguments");
  if (longs("coll_blocking kind communicator sendbuf count datatype recvbuf count datatype op root", args, 10, 10, a) < 0) return NULL;
  if (TRACING) note_coll(a);
  BLOCKING(code, pending, &st, gm_coll_blocking((int)a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], &pending));
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
  if (longs("collv", args, 2, 2, head) < 0 || longs("collv", args + 2, 1, 1, &s_addr) < 0 ||
      longs("collv", args + 5, 1, 1, &s_type) < 0 || longs("collv", args + 6, 1, 1, &r_addr) < 0 ||
      longs("collv", args + 9, 1, 1, &r_type) < 0 || longs("collv root", args + 10, 1, 1, &root) < 0)
    return NULL;
  int64_t *lists[4] = {0};
  Py_ssize_t lengths[4] = {0};
  static const int where[4] = {3, 4, 7, 8};
  for (int i = 0; i < 4; i++)
    if (args[where[i]] != Py_None && !(lists[i] = array(args[where[i]], &lengths[i]))) goto end;
  gm_side s = {s_addr, s_type, lists[0], lists[1], lengths[0], lengths[1]};
  gm_side r = {r_addr, r_type, lists[2], lists[3], lengths[2], lengths[3]};
  int code;
  if (TRACING) {
    const gm_side *side = s_addr != IN_PLACE && s.ncounts ? &s : &r;
    int64_t items = 0;
    for (int64_t i = 0; i < side->ncounts; i++) items += side->counts[i];
    int rooted = head[0] == GM_GATHERV || head[0] == GM_SCATTERV;
    trace_note(TRACE_CALL_COMM, head[1], rooted ? root : TRACE_NO_PEER, -1, trace_bytes(side->type, items));
  }
  Py_BEGIN_ALLOW_THREADS code = gm_collv((int)head[0], head[1], &s, &r, root, nonblocking, &req);
  Py_END_ALLOW_THREADS out = started(code, req, args[11]);
end:
  for (int i = 0; i < 4; i++) PyMem_Free(lists[i]);
  return out;
}

static PyObject *raw_collv(ARGS) { return collv(args, n, 1); }

/* Like collv, for a blocking call: it is to be waited for at once. */
static PyObject *raw_collv_blocking(ARGS) { return collv(args, n, 0); }

static PyObject *raw_result(ARGS) {
  int64_t a[1], out = 0;
  int code;
  if (longs("result", args, n, 1, a) < 0) return NULL;
  for (;;) {
    Py_BEGIN_ALLOW_THREADS code = gm_result(a[0], &out);
    Py_END_ALLOW_THREADS if (code != GM_INTERRUPTED) break;
    if (PyErr_CheckSignals() < 0) {
      gm_abandon(a[0], 1);
      keep_until_over(a[0], NULL);
      return NULL;
    }
  }
  return handle_or(code, out);
}

#define MAKE(name, count, arguments, note, expr)           \
  static PyObject *raw_##name(ARGS) {                      \
    int64_t a[count], req = 0;                             \
    if (longs(#name " " arguments, args, n, count, a) < 0) return NULL; \
    int code;                                              \
    note;                                                  \
    Py_BEGIN_ALLOW_THREADS code = expr;                    \
    Py_END_ALLOW_THREADS return handle_or(code, req);      \
  }

MAKE(comm_dup, 1, "", NOTE_COMM(a[0], TRACE_NO_PEER, -1, 0), gm_comm_dup(a[0], &req))
MAKE(comm_split, 3, "communicator color key", NOTE_COMM(a[0], TRACE_NO_PEER, -1, 0), gm_comm_split(a[0], a[1], a[2], &req))
MAKE(comm_split_type, 3, "communicator split_type key", NOTE_COMM(a[0], TRACE_NO_PEER, -1, 0), gm_comm_split_type(a[0], a[1], a[2], &req))
MAKE(comm_create, 2, "", NOTE_COMM(a[0], TRACE_NO_PEER, -1, 0), gm_comm_create(a[0], a[1], &req))
MAKE(comm_free, 1, "", NOTE_COMM(a[0], TRACE_NO_PEER, -1, 0), gm_comm_free(a[0], &req))
MAKE(win_create, 7, "", NOTE_COMM(a[4], TRACE_NO_PEER, -1, a[2]), (guard_arm(0), gm_win_create(a[0], a[1], a[2], a[3], a[4], a[5], a[6], &req)))
MAKE(win_free, 1, "", NOTE_WIN(a[0], TRACE_NO_PEER, -1), gm_win_free(a[0], &req))

static PyObject *raw_rma(ARGS) {
  int64_t a[13];
  int code;
  if (longs("rma kind window origin count datatype result count datatype target_rank target count datatype op", args, n, 13, a) < 0) return NULL;
  if (TRACING) trace_note_rma_types(a);
  do {
    Py_BEGIN_ALLOW_THREADS code = gm_rma((int)a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12]);
    Py_END_ALLOW_THREADS if (code == GM_INTERRUPTED && PyErr_CheckSignals() < 0) return NULL;
  } while (code == GM_INTERRUPTED); /* it has not begun */
  return none_or(code);
}

/* The same arguments, and what must live until the request completes. */
static PyObject *raw_rma_request(ARGS) {
  int64_t a[13], req = 0;
  int code;
  if (n != 14) return PyErr_Format(PyExc_TypeError, "rma_request takes 14 arguments");
  if (longs("rma kind window origin count datatype result count datatype target_rank target count datatype op", args, 13, 13, a) < 0) return NULL;
  if (TRACING) trace_note_rma_types(a);
  do {
    Py_BEGIN_ALLOW_THREADS code = gm_rma_request((int)a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], &req);
    Py_END_ALLOW_THREADS if (code == GM_INTERRUPTED && PyErr_CheckSignals() < 0) return NULL;
  } while (code == GM_INTERRUPTED);
  return started(code, req, args[13]);
}

#define SYNC(name, count, arguments, note, expr)           \
  static PyObject *raw_##name(ARGS) {                      \
    int64_t a[count], pending = 0;                         \
    int code;                                              \
    gm_status own;                                         \
    if (longs(#name " " arguments, args, n, count, a) < 0) return NULL; \
    note;                                                  \
    BLOCKING(code, pending, &own, expr);                   \
    return none_or(code);                                  \
  }

SYNC(barrier, 1, "", NOTE_COMM(a[0], TRACE_NO_PEER, -1, 0), gm_barrier(a[0], &pending))
SYNC(fence, 2, "window assertion", NOTE_WIN(a[0], TRACE_NO_PEER, a[1]), gm_fence(a[0], a[1], &pending))
SYNC(lock, 4, "window rank lock_type assertion", NOTE_WIN(a[0], a[1], a[2]), gm_lock(a[0], a[1], a[2], a[3], &pending))
SYNC(lock_all, 2, "window assertion", NOTE_WIN(a[0], TRACE_NO_PEER, -1), gm_lock_all(a[0], a[1], &pending))
SYNC(unlock, 2, "window rank", NOTE_WIN(a[0], a[1], -1), gm_unlock(a[0], a[1], &pending))
SYNC(unlock_all, 1, "", NOTE_WIN(a[0], TRACE_NO_PEER, -1), gm_unlock_all(a[0], &pending))
SYNC(flush, 2, "window rank", NOTE_WIN(a[0], a[1], -1), gm_flush(a[0], a[1], &pending))
SYNC(drain, 2, "", (void)0, gm_drain(a[0], a[1], &pending))
SYNC(flush_all, 1, "", NOTE_WIN(a[0], TRACE_NO_PEER, -1), gm_flush(a[0], -1, &pending))
SYNC(win_post, 3, "window group assertion", NOTE_WIN(a[0], TRACE_NO_PEER, -1), gm_win_post(a[0], a[1], a[2]))
SYNC(win_start, 3, "window group assertion", NOTE_WIN(a[0], TRACE_NO_PEER, -1), gm_win_start(a[0], a[1], a[2], &pending))
SYNC(win_complete, 1, "", NOTE_WIN(a[0], TRACE_NO_PEER, -1), gm_win_complete(a[0], &pending))
SYNC(win_wait, 1, "", NOTE_WIN(a[0], TRACE_NO_PEER, -1), gm_win_wait(a[0], &pending))
SYNC(win_sync, 1, "", NOTE_WIN(a[0], TRACE_NO_PEER, -1), gm_win_desc(a[0]) ? 0 : gm_flush(a[0], -1, &pending))

/* arm_guard(forget): see guard.c. */
static PyObject *raw_arm_guard(PyObject *self, PyObject *forget) {
  guard_arm(PyObject_IsTrue(forget));
  Py_RETURN_NONE;
}

static PyObject *raw_win_test(ARGS) {
  int64_t a[1], done = 0;
  if (longs("win_test", args, n, 1, a) < 0) return NULL;
  int code;
  Py_BEGIN_ALLOW_THREADS code = gm_win_test(a[0], &done);
  Py_END_ALLOW_THREADS NOTE_WIN(a[0], TRACE_NO_PEER, done);
  if (code) return raise_code(code);
  return PyBool_FromLong(done);
}

/* win_memory(win) -> Memory that shows this process's part, None if the memory
   is the user's. */
static PyObject *raw_win_memory(ARGS) {
  int64_t a[4];
  if (longs("win_memory", args, n, 3, a) < 0) return NULL;
  int64_t held = gm_win_retain(a[0]);
  if (!held) Py_RETURN_NONE;
  PyObject *m = PyObject_CallFunction((PyObject *)&MemoryType, "LLL", (long long)held, (long long)a[1], (long long)a[2]);
  if (!m) gm_release(held);
  return m;
}

/* keep(object): it lives, whatever Python does, also at the end of the
   interpreter, until let_go(object). */
static PyObject *raw_keep(ARGS) {
  if (n != 1) return PyErr_Format(PyExc_TypeError, "keep takes 1 argument");
  Py_INCREF(args[0]);
  Py_RETURN_NONE;
}

static PyObject *raw_let_go(ARGS) {
  if (n != 1) return PyErr_Format(PyExc_TypeError, "let_go takes 1 argument");
  Py_DECREF(args[0]); /* the caller has one more */
  Py_RETURN_NONE;
}

/* alloc_mem(bytes, alignment) -> Memory; an alignment of 0 is any. */
static PyObject *raw_alloc_mem(ARGS) {
  int64_t a[2], addr = 0, held = 0;
  if (longs("alloc_mem", args, n, 2, a) < 0) return NULL;
  int code = gm_alloc_mem(a[0], a[1], &addr, &held);
  if (code) return raise_code(code);
  return PyObject_CallFunction((PyObject *)&MemoryType, "LLL", (long long)held, (long long)addr, (long long)a[0]);
}

static PyObject *finalize(void) {
  int code = 0;
  for (;;) {
    Py_BEGIN_ALLOW_THREADS code = gm_finalize(1);
    Py_END_ALLOW_THREADS if (code != GM_INTERRUPTED) return none_or(code);
    if (PyErr_CheckSignals() < 0) {
      gm_finalize(0);
      return NULL;
    }
  }
}

static PyObject *raw_finalize(PyObject *self, PyObject *noargs) {
  if (gm_forked) Py_RETURN_NONE;
  if (!TRACING) return finalize();
  trace_open(TRACE_FINALIZE);
  PyObject *result = finalize();
  trace_close(result != NULL);
  return result;
}

static PyObject *raw_reset(PyObject *self, PyObject *noargs) {
  int code = 0;
  if (check_process() < 0) return NULL;
  for (;;) {
    Py_BEGIN_ALLOW_THREADS code = gm_reset();
    Py_END_ALLOW_THREADS if (code != GM_INTERRUPTED) break;
    if (PyErr_CheckSignals() < 0) return NULL;
  }
  return none_or(code);
}

static PyObject *raw_abort(ARGS) {
  int64_t a[2];
  if (longs("abort", args, n, 2, a) < 0) return NULL;
  gm_abort(a[1]);
  Py_RETURN_NONE;
}

/* buffer_info(obj, writable) -> (address, nbytes, format, itemsize, readonly, holder) */
static PyObject *raw_buffer_info(ARGS) {
  if (n != 2) return PyErr_Format(PyExc_TypeError, "buffer_info takes 2 arguments");
  HolderObject *h = (HolderObject *)HolderType.tp_alloc(&HolderType, 0);
  if (!h) return NULL;
  int writable = PyObject_IsTrue(args[1]);
  if (PyObject_GetBuffer(args[0], &h->view, PyBUF_ANY_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0)) < 0) {
    h->view.obj = NULL;
    Py_DECREF(h);
    return NULL;
  }
  if (watch(args[0], h->view.len) < 0) {
    Py_DECREF(h);
    return NULL;
  }
  return Py_BuildValue("LnsniN", (long long)(intptr_t)h->view.buf, h->view.len, h->view.format, h->view.itemsize,
                       h->view.readonly, (PyObject *)h);
}

#define F(name) {#name, (PyCFunction)(void *)raw_##name, METH_FASTCALL, NULL}

PyMethodDef raw_methods[] = {{"setup", setup, METH_VARARGS, NULL},
                             {"set_format", set_format, METH_VARARGS, NULL},
                             {"set_slow", set_slow, METH_VARARGS, NULL},
                             {"set_op", set_op, METH_VARARGS, NULL},
                             {"finalize", raw_finalize, METH_NOARGS, NULL},
                             {"reset", raw_reset, METH_NOARGS, NULL},
                             {"kept", raw_kept, METH_NOARGS, NULL},
                             {"arm_guard", raw_arm_guard, METH_O, NULL},
                             F(p2p), F(p2p_init), F(start), F(wait), F(finish), F(adopt), F(test), F(request_status), F(waitall), F(testall),
                             F(waitany), F(testany), F(waitsome), F(testsome), F(free), F(retire), F(cancel),
                             F(request_inactive), F(sendrecv), F(isendrecv), F(probe), F(mprobe), F(iprobe), F(improbe), F(mrecv), F(file_io),
                             F(coll), F(coll_blocking), F(collv), F(collv_blocking), F(result), F(comm_dup), F(comm_split), F(comm_split_type),
                             F(comm_create), F(comm_free), F(win_create), F(win_free), F(rma), F(rma_request), F(barrier), F(fence), F(lock),
                             F(lock_all), F(unlock), F(unlock_all), F(flush), F(drain), F(flush_all), F(win_sync), F(win_post), F(win_start), F(win_complete), F(win_wait), F(win_test), F(win_memory),
                             {"trace", trace_switch, METH_O, NULL},
                             {"trace_mark", trace_mark, METH_NOARGS, NULL},
                             {"trace_part", trace_part, METH_VARARGS, NULL},
                             F(keep), F(let_go), F(alloc_mem), F(abort), F(buffer_info), F(win_address),
                             {"watch", (PyCFunction)(void *)raw_watch, METH_FASTCALL, NULL},
                             {"flush_local", (PyCFunction)(void *)raw_flush, METH_FASTCALL, NULL},
                             {"flush_local_all", (PyCFunction)(void *)raw_flush_all, METH_FASTCALL, NULL},
                             {0}};
