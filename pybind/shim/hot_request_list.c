/* The hot methods of Request for several requests: Waitall, Testsome and the like. What holds for those of one request, in
   hot_request.c, holds here. */
#include "trace.h"
#include "_cgo_export.h"

PyObject *plain_requests(PyObject *o) {
  if (!PyList_CheckExact(o) && !PyTuple_CheckExact(o)) return NULL;
  PyObject *list = PySequence_Tuple(o);
  for (Py_ssize_t i = 0; list && i < PyTuple_GET_SIZE(list); i++)
    if (!is_plain_request(PyTuple_GET_ITEM(list, i))) Py_CLEAR(list);
  return list;
}

/* What a call works on. Another thread may complete a request meanwhile: it is only finished here if its handle is still
   that in hs. */
typedef struct {
  PyObject *list, *statuses; /* tuples; statuses may be NULL */
  int n, none;               /* none: all requests are null */
  gm_status *sts;
  int64_t *hs;
  int *codes; /* GM_INTERRUPTED: the request has not ended */
  int *indices;
} requests;

static void release(requests *q) {
  PyMem_Free(q->sts);
  Py_DECREF(q->list);
  Py_XDECREF(q->statuses);
}

/* The program's list of statuses: as many as there are requests, or more. */
static int take_statuses(requests *q, PyObject *o) {
  if (!o || o == Py_None) return 0;
  if (!PyList_CheckExact(o) || PyList_GET_SIZE(o) < q->n) return -1;
  q->statuses = PySequence_Tuple(o);
  for (int i = 0; q->statuses && i < q->n; i++)
    if (!PyObject_TypeCheck(PyTuple_GET_ITEM(q->statuses, i), StatusType)) return -1;
  return q->statuses ? 0 : -1;
}

/* Returns -1 for what is left to the fallback, perhaps with an exception. Otherwise release is to follow. */
static int take(requests *q, PyObject *o, PyObject *statuses) {
  *q = (requests){.list = plain_requests(o)};
  if (!q->list) return -1;
  Py_ssize_t n = PyTuple_GET_SIZE(q->list);
  q->n = (int)n;
  size_t each = sizeof *q->sts + sizeof *q->hs + sizeof *q->codes + sizeof *q->indices;
  if (n > INT_MAX || take_statuses(q, statuses) < 0 || !(q->sts = PyMem_Malloc(n * each + 1))) {
    release(q);
    return -1;
  }
  q->hs = (int64_t *)(q->sts + n);
  q->codes = (int *)(q->hs + n);
  q->indices = q->codes + n;
  q->none = 1;
  for (int i = 0; i < q->n; i++) {
    q->codes[i] = GM_INTERRUPTED;
    q->hs[i] = ((RequestObject *)PyTuple_GET_ITEM(q->list, i))->h;
    if (q->hs[i]) q->none = 0;
  }
  return 0;
}

static RequestObject *request_at(requests *q, int i) { return (RequestObject *)PyTuple_GET_ITEM(q->list, i); }

/* Request i has ended, with a code. Returns the code that the call has of it: none, if another thread has completed it, or
   it is twice in the list. */
static int finish(requests *q, int i, int code, const gm_status *st) {
  RequestObject *r = request_at(q, i);
  if (!q->hs[i] || (code && r->h != q->hs[i])) return 0;
  finish_request(r, q->hs[i], code);
  if (TRACING && code == 0) trace_note_status(st, 1);
  return code;
}

static void give_status(requests *q, int i, const gm_status *st) {
  ((StatusObject *)PyTuple_GET_ITEM(q->statuses, i))->st = *st;
}

/* The end of Waitall and Testall: finishes the requests that have ended, and returns the first error. The program gets
   statuses if all have, or any has failed. */
static int finish_all(requests *q) {
  int first = 0, ended = 1, failed = 0;
  for (int i = 0; i < q->n; i++) {
    int code = q->codes[i];
    if (code == GM_INTERRUPTED) {
      ended = 0;
      continue;
    }
    if (may_complete(code)) {
      ended = 0;
      q->codes[i] = GM_INTERRUPTED;
    } else if ((code = finish(q, i, code, &q->sts[i])) != 0) {
      failed = 1;
    } else if (q->codes[i]) {
      complete_at_once(0, &q->sts[i]);
    }
    if (code && !first) first = code;
  }
  if (!q->statuses || !(ended || failed)) return first;
  for (int i = 0; i < q->n; i++) {
    if (q->codes[i] == GM_INTERRUPTED) {
      complete_at_once(0, &q->sts[i]);
      q->sts[i].error = GM_ERR_PENDING;
    }
    give_status(q, i, &q->sts[i]);
  }
  return first;
}

static const char *const all_names[] = {"requests", "statuses", NULL};

static PyObject *request_waitall(HOT) {
  PyObject *a[2];
  requests q;
  if (gm_forked || match_args(all_names, 1, args, n, kwnames, a) < 0 || take(&q, a[0], a[1]) < 0)
    FALL_BACK(CALL_WAITALL);
  int code = 0, done = 0, first = 0;
  for (int i = 0; i < q.n; i++) {
    if (q.hs[i] != GM_REQUEST_SENT) continue;
    finish_request(request_at(&q, i), GM_REQUEST_SENT, 0);
    q.hs[i] = 0;
  }
  gm_status *sts = q.statuses || TRACING ? q.sts : NULL;
  RESTARTING(code, gm_wait_each(q.hs, q.n, sts, q.codes, &done));
  first = finish_all(&q);
  release(&q);
  if (code == RAISED) return NULL;
  if (first) return raise_code(first);
  Py_RETURN_TRUE;
}

static PyObject *request_testall(HOT) {
  PyObject *a[2];
  requests q;
  if (gm_forked || match_args(all_names, 1, args, n, kwnames, a) < 0 || take(&q, a[0], a[1]) < 0)
    FALL_BACK(CALL_TESTALL);
  int code = 0, all = 0;
  WITHOUT_GIL(code = gm_testall(q.hs, q.n, q.sts, q.codes, &all));
  int first = finish_all(&q);
  if (all) code = 0; /* unless it is in codes */
  release(&q);
  if (first || code) return raise_code(first ? first : code);
  return PyBool_FromLong(all);
}

/* The index of the first active request, if that is a send that was complete when its call returned; or -1. */
static int first_is_sent(const requests *q) {
  for (int i = 0; i < q->n; i++)
    if (q->hs[i]) return q->hs[i] == GM_REQUEST_SENT ? i : -1;
  return -1;
}

/* Matches the arguments of Waitany and Testany, as take does. */
static int take_any(requests *q, PyObject *const *args, Py_ssize_t n, PyObject *kwnames, gm_status *own,
                    gm_status **st) {
  static const char *const names[] = {"requests", "status", NULL};
  PyObject *a[2];
  if (gm_forked || match_args(names, 1, args, n, kwnames, a) < 0) return -1;
  *st = own;
  if (a[1] && a[1] != Py_None) {
    if (!PyObject_TypeCheck(a[1], StatusType)) return -1;
    *st = &((StatusObject *)a[1])->st;
  }
  return take(q, a[0], NULL);
}

static PyObject *request_waitany(HOT) {
  requests q;
  gm_status own, *st;
  if (take_any(&q, args, n, kwnames, &own, &st) < 0) FALL_BACK(CALL_WAITANY);
  int code = 0, index = first_is_sent(&q);
  if (index >= 0 || q.none)
    complete_at_once(0, st);
  else
    RESTARTING(code, gm_waitany(q.hs, q.n, st, &index));
  if (index >= 0 && code != RAISED) code = finish(&q, index, code, st);
  release(&q);
  if (code == RAISED) return NULL;
  return code ? raise_code(code) : PyLong_FromLong(index < 0 ? GM_UNDEFINED : index);
}

static PyObject *request_testany(HOT) {
  requests q;
  gm_status own, *st;
  if (take_any(&q, args, n, kwnames, &own, &st) < 0) FALL_BACK(CALL_TESTANY);
  int code = 0, flag = 1, index = first_is_sent(&q);
  if (index >= 0 || q.none)
    complete_at_once(0, st);
  else
    WITHOUT_GIL(code = gm_testany(q.hs, q.n, st, &index, &flag));
  if (index >= 0) code = finish(&q, index, code, st);
  release(&q);
  if (code) return raise_code(code);
  return Py_BuildValue("iO", index < 0 ? GM_UNDEFINED : index, flag ? Py_True : Py_False);
}

/* The end of Waitsome and Testsome: finishes the k requests that have ended, and returns the first error. */
static int finish_some(requests *q, int k) {
  int first = 0, given = 0;
  for (int i = 0; i < k; i++) {
    int code = q->codes[i];
    if (may_complete(code)) {
      if (!first) first = code;
      continue;
    }
    code = finish(q, q->indices[i], code, &q->sts[i]);
    if (q->statuses) give_status(q, given++, &q->sts[i]);
    if (code && !first) first = code;
  }
  return first;
}

static PyObject *some(requests *q, int wait) {
  int code, k = 0;
  RESTARTING(code, gm_some(q->hs, q->n, q->indices, q->sts, q->codes, wait, &k));
  if (code == 0 && k > 0) code = finish_some(q, k);
  if (code || k < 0) return none_or(code);
  PyObject *out = PyList_New(k);
  for (int i = 0; out && i < k; i++) PyList_SET_ITEM(out, i, PyLong_FromLong(q->indices[i]));
  return out;
}

static PyObject *some_of(HOT, int which, int wait) {
  PyObject *a[2];
  requests q;
  if (gm_forked || match_args(all_names, 1, args, n, kwnames, a) < 0 || take(&q, a[0], a[1]) < 0) FALL_BACK(which);
  PyObject *out = some(&q, wait);
  release(&q);
  return out;
}

static PyObject *request_waitsome(HOT) { return some_of(self, args, n, kwnames, CALL_WAITSOME, 1); }
static PyObject *request_testsome(HOT) { return some_of(self, args, n, kwnames, CALL_TESTSOME, 0); }

TRACED(request_waitall, CALL_WAITALL)
TRACED(request_testall, CALL_TESTALL)
TRACED(request_waitany, CALL_WAITANY)
TRACED(request_testany, CALL_TESTANY)
TRACED(request_waitsome, CALL_WAITSOME)
TRACED(request_testsome, CALL_TESTSOME)

PyMethodDef request_list_methods[] = {
    HOT_CLASS_METHOD("Waitall", traced_request_waitall, "($cls, requests, statuses=None)"),
    HOT_CLASS_METHOD("Testall", traced_request_testall, "($cls, requests, statuses=None)"),
    HOT_CLASS_METHOD("Waitany", traced_request_waitany, "($cls, requests, status=None)"),
    HOT_CLASS_METHOD("Testany", traced_request_testany, "($cls, requests, status=None)"),
    HOT_CLASS_METHOD("Waitsome", traced_request_waitsome, "($cls, requests, statuses=None)"),
    HOT_CLASS_METHOD("Testsome", traced_request_testsome, "($cls, requests, statuses=None)"),
    {0}};
