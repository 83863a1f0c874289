/* The raw calls on one request: completion, and who keeps its memory until then. A call that starts an
   operation returns what it has started (StartedObject) with the memory that must stay. A blocking call
   hands that to finish, which waits; any other hands it to adopt, and a Request owns it from then on. */
#include "raw.h"
#include "_cgo_export.h"

/* adopt(request, started): the request owns it from here on. */
static PyObject *raw_adopt(ARGS) {
  StartedObject *s;
  if (n != 2 || !PyObject_TypeCheck(args[0], RequestType))
    return PyErr_Format(PyExc_TypeError, "adopt takes a Request and what was started");
  if (!(s = started_arg(args[1]))) return NULL;
  RequestObject *r = (RequestObject *)args[0];
  r->h = s->h;
  s->h = 0;
  Py_XSETREF(r->buf, s->buf);
  s->buf = NULL;
  Py_RETURN_NONE;
}

static PyObject *raw_start(ARGS) {
  int64_t a[1];
  int code;
  if (integers("start", args, n, 1, a) < 0) return NULL;
  WITHOUT_GIL(code = gm_start(a[0]));
  return none_or(code);
}

static PyObject *raw_wait(ARGS) {
  int64_t a[1];
  gm_status *st, own;
  if (n != 2) return PyErr_Format(PyExc_TypeError, "wait takes 2 arguments");
  if (integers("wait", args, 1, 1, a) < 0 || status_arg(args[1], &st) < 0) return NULL;
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
  gm_blocks(s->h);
  int code = wait_request(s->h, st ? st : &own);
  if (code == RAISED) {
    WITHOUT_GIL(gm_abandon(s->h, 1));
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
  if (integers("test", args, 1, 1, a) < 0 || status_arg(args[1], &st) < 0) return NULL;
  int code;
  WITHOUT_GIL(code = gm_test(a[0], st ? st : &own, &done));
  if (TRACING && done && !code) trace_note_status(st ? st : &own, 1);
  return code ? raise_code(code) : PyBool_FromLong(done);
}

static PyObject *raw_request_status(ARGS) {
  int64_t a[1];
  int done = 0;
  gm_status *st, own;
  if (n != 2) return PyErr_Format(PyExc_TypeError, "request_status takes 2 arguments");
  if (integers("request_status", args, 1, 1, a) < 0 || status_arg(args[1], &st) < 0) return NULL;
  int code = gm_request_status(a[0], st ? st : &own, &done);
  return code ? raise_code(code) : PyBool_FromLong(done);
}

/* request_inactive(request): whether it is persistent and not started. */
static PyObject *raw_request_inactive(ARGS) {
  int64_t a[1];
  if (integers("request_inactive", args, n, 1, a) < 0) return NULL;
  return PyBool_FromLong(gm_request_inactive(a[0]));
}

static PyObject *raw_cancel(ARGS) {
  int64_t a[1];
  if (integers("cancel", args, n, 1, a) < 0) return NULL;
  return none_or(gm_cancel(a[0]));
}

/* free(request): what it stands for goes on, and keeps its memory. */
static PyObject *raw_free(ARGS) {
  if (n != 1 || !PyObject_TypeCheck(args[0], RequestType)) return PyErr_Format(PyExc_TypeError, "free takes a Request");
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

/* retire(request, handle, code): its operation has ended; see finish_request. */
static PyObject *raw_retire(ARGS) {
  int64_t h;
  if (n != 3 || !PyObject_TypeCheck(args[0], RequestType))
    return PyErr_Format(PyExc_TypeError, "retire takes a Request, a handle and an error code");
  if (integers("retire", args + 1, 1, 1, &h) < 0) return NULL;
  long code = PyLong_AsLong(args[2]);
  if (code == -1 && PyErr_Occurred()) return NULL;
  finish_request((RequestObject *)args[0], h, (int)code);
  Py_RETURN_NONE;
}

/* kept() -> how many operations that nobody waits for keep memory. Like Test, it makes progress. */
static PyObject *raw_kept(PyObject *self, PyObject *noargs) {
  if (check_process() < 0) return NULL;
  WITHOUT_GIL(gm_progress());
  keep_sweep();
  return PyLong_FromSsize_t(kept_count());
}

PyObject *made_or(int code, int64_t req) {
  int64_t out = 0;
  if (code) return raise_code(code);
  RESTARTING(code, gm_result(req, &out));
  if (code == RAISED) {
    gm_abandon(req, 1);
    keep_until_over(req, NULL);
    return NULL;
  }
  return handle_or(code, out);
}

PyObject *made_by(int code, int64_t made, int64_t req) {
  if (code == GM_INTERRUPTED && PyErr_CheckSignals() < 0) {
    gm_abandon(req, 1);
    keep_until_over(req, NULL);
    return NULL;
  }
  return code == GM_INTERRUPTED || (code == 0 && req) ? made_or(0, req) : handle_or(code, made);
}

/* result(request) -> the handle of what the request has made. */
static PyObject *raw_result(ARGS) {
  int64_t a[1];
  if (integers("result", args, n, 1, a) < 0) return NULL;
  return made_or(0, a[0]);
}

PyMethodDef raw_request_methods[] = {F(adopt),
                                     F(start),
                                     F(wait),
                                     F(finish),
                                     F(test),
                                     F(request_status),
                                     F(request_inactive),
                                     F(cancel),
                                     F(free),
                                     F(retire),
                                     {"kept", raw_kept, METH_NOARGS, NULL},
                                     F(result),
                                     {0}};
