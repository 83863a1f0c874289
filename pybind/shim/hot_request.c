/* The hot methods of Request and Prequest, and how a request ends. As in hot_win.c, the usual arguments are read here,
   and the Python method of the same name gets the others; so are requests that complete with a step in Python.

   They are called with the GIL held, and give it up while they wait: another thread may complete the same request
   meanwhile, so one is only finished if its handle is still that which was waited for. */
#include "object.h"
#include "_cgo_export.h"

static PyObject *holder_of(spec *s) {
  HolderObject *holder = allocate(HolderType);
  if (holder) holder->view = s->view;
  return (PyObject *)holder;
}

/* What keeps the buffers of one or two specs acquired. */
static PyObject *holder_of_both(spec *s, spec *r) {
  if (!s || !r) return holder_of(s ? s : r);
  PyObject *first = holder_of(s), *second = holder_of(r),
           *both = first && second ? PyTuple_Pack(2, first, second) : NULL;
  if (both) {
    Py_DECREF(first);
    Py_DECREF(second);
  }
  return both;
}

PyObject *new_request_of(int64_t h, spec *s, spec *r) {
  PyObject *memory = s || r ? holder_of_both(s, r) : NULL;
  RequestObject *request = memory || !(s || r) ? allocate((PyTypeObject *)request_class) : NULL;
  if (!request) return NULL; /* out of memory; the buffers stay acquired */
  request->h = h;
  request->buf = memory;
  keep_sweep();
  return (PyObject *)request;
}

PyObject *new_request(int64_t h, spec *s) { return new_request_of(h, s, NULL); }

void finish_request(RequestObject *r, int64_t h, int code) {
  if (r->h != h || (r->kind & REQUEST_PERSISTENT) || may_complete(code)) return;
  PyObject *memory = r->buf;
  r->h = r->kind = 0;
  r->buf = NULL;
  if (code)
    keep_until_over(h, memory);
  else
    Py_XDECREF(memory);
}

int is_plain_request(PyObject *o) {
  return request_class &&
         (Py_TYPE(o) == (PyTypeObject *)request_class || Py_TYPE(o) == (PyTypeObject *)prequest_class) &&
         !(((RequestObject *)o)->kind & REQUEST_STEPPED);
}

static int wait_for(RequestObject *r, gm_status *st) {
  int64_t h = r->h; /* another thread may wait for it as well, and be first */
  int code = 0;
  if (!complete_at_once(h, st)) RESTARTING(code, gm_wait(h, st));
  if (code == RAISED) return code;
  finish_request(r, h, code);
  if (TRACING && code == 0) trace_note_status(st, 1);
  return code;
}

static int status_of(PyObject *o, gm_status **st, gm_status *own) {
  *st = own;
  if (!o || o == Py_None) return 0;
  if (!PyObject_TypeCheck(o, StatusType)) return -1;
  *st = &((StatusObject *)o)->st;
  return 0;
}

static PyObject *request_wait(HOT) {
  static const char *const names[] = {"status", NULL};
  PyObject *a[1];
  gm_status own, *st;
  if (gm_forked || !is_plain_request(self) || match_args(names, 0, args, n, kwnames, a) < 0 ||
      status_of(a[0], &st, &own) < 0)
    FALL_BACK(CALL_WAIT);
  int code = wait_for((RequestObject *)self, st);
  if (code == 0) Py_RETURN_TRUE;
  return none_or(code);
}

/* The object that has arrived, None if the request brings none. */
static PyObject *take_object(RequestObject *r, int64_t bytes) {
  PyObject *memory = r->arriving, *pickle, *o;
  if (!memory || memory == Py_None) Py_RETURN_NONE;
  /* Another thread may have completed the request before: the object is for who has its status. */
  if (bytes == 0) Py_RETURN_NONE;
  r->arriving = NULL;
  if (Py_TYPE(memory) == RoomType) {
    pickle = room_holds(memory, bytes);
  } else {
    PyObject *all = PyMemoryView_FromObject(memory);
    pickle = all ? PySequence_GetSlice(all, 0, (Py_ssize_t)bytes) : NULL;
    Py_XDECREF(all);
  }
  Py_DECREF(memory);
  o = pickle ? unpickled(pickle, NULL) : NULL;
  Py_XDECREF(pickle);
  return o;
}

static PyObject *request_wait_object(HOT) {
  static const char *const names[] = {"status", NULL};
  PyObject *a[1];
  gm_status own, *st;
  if (gm_forked || !is_plain_request(self) || match_args(names, 0, args, n, kwnames, a) < 0 ||
      status_of(a[0], &st, &own) < 0)
    FALL_BACK(CALL_WAIT_OBJECT);
  int code = wait_for((RequestObject *)self, st);
  if (code) return none_or(code);
  return take_object((RequestObject *)self, st->bytes);
}

static PyObject *request_test(HOT) {
  static const char *const names[] = {"status", NULL};
  PyObject *a[1];
  gm_status own, *st;
  int done = 0;
  if (gm_forked || !is_plain_request(self) || match_args(names, 0, args, n, kwnames, a) < 0 ||
      status_of(a[0], &st, &own) < 0)
    FALL_BACK(CALL_TEST);
  RequestObject *r = (RequestObject *)self;
  int64_t h = r->h;
  int code = 0;
  if (!(done = complete_at_once(h, st))) WITHOUT_GIL(code = gm_test(h, st, &done));
  if (h == 0) Py_RETURN_TRUE;
  if (done || code) finish_request(r, h, code);
  if (TRACING && done && !code) trace_note_status(st, 1);
  return code ? raise_code(code) : PyBool_FromLong(done);
}

/* Starts a persistent request; see start_p2p for the GIL. */
static int start(RequestObject *r) {
  int code;
  if (r->buf && Py_TYPE(r->buf) == HolderType && ((HolderObject *)r->buf)->view.len <= LONG_COPY) return gm_start(r->h);
  WITHOUT_GIL(code = gm_start(r->h));
  return code;
}

static PyObject *request_start(HOT) {
  if (gm_forked || n || kwnames || !is_plain_request(self)) FALL_BACK(CALL_START);
  return none_or(start((RequestObject *)self));
}

static PyObject *request_startall(HOT) {
  static const char *const names[] = {"requests", NULL};
  PyObject *a[1], *list;
  if (gm_forked || match_args(names, 1, args, n, kwnames, a) < 0 || !(list = plain_requests(a[0])))
    FALL_BACK(CALL_STARTALL);
  int code = 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(list) && !code; i++)
    code = start((RequestObject *)PyTuple_GET_ITEM(list, i));
  Py_DECREF(list);
  return none_or(code);
}

/* Waits until all requests of a tuple are complete or can't be any more, and finishes none. */
static int await_all(PyObject *list, int64_t *hs) {
  Py_ssize_t n = PyTuple_GET_SIZE(list);
  int code = 0;
  for (Py_ssize_t i = 0; i < n; i++) {
    int64_t h = ((RequestObject *)PyTuple_GET_ITEM(list, i))->h;
    hs[i] = h == GM_REQUEST_SENT ? 0 : h;
  }
  RESTARTING(code, gm_await(hs, (int)n));
  return code;
}

/* Waits for the requests of a tuple. Returns the list of their objects. */
static PyObject *objects_of(PyObject *list) {
  Py_ssize_t n = PyTuple_GET_SIZE(list);
  int64_t *words = PyMem_Malloc((n + 1) * sizeof *words); /* handles, then bytes */
  if (!words) return PyErr_NoMemory();
  int code = await_all(list, words), first = code;
  for (Py_ssize_t i = 0; i < n && code != RAISED; i++) {
    gm_status own;
    code = wait_for((RequestObject *)PyTuple_GET_ITEM(list, i), &own);
    if (code && !first) first = code;
    words[i] = own.bytes;
  }
  PyObject *objects = NULL;
  if (code == RAISED || first)
    none_or(code == RAISED ? code : first);
  else
    objects = PyList_New(0); /* see unpickled_list */
  for (Py_ssize_t i = 0; objects && i < n; i++) {
    PyObject *o = take_object((RequestObject *)PyTuple_GET_ITEM(list, i), words[i]);
    if (!o || PyList_Append(objects, o) < 0) Py_CLEAR(objects);
    Py_XDECREF(o);
  }
  PyMem_Free(words);
  return objects;
}

static PyObject *request_waitall_objects(HOT) {
  static const char *const names[] = {"requests", "statuses", NULL};
  PyObject *a[2], *list;
  if (gm_forked || match_args(names, 1, args, n, kwnames, a) < 0 || (a[1] && a[1] != Py_None) ||
      !(list = plain_requests(a[0])))
    FALL_BACK(CALL_WAITALL_OBJECTS);
  PyObject *objects = objects_of(list);
  Py_DECREF(list);
  return objects;
}

TRACED(request_wait, CALL_WAIT)
TRACED(request_wait_object, CALL_WAIT_OBJECT)
TRACED(request_test, CALL_TEST)
TRACED(request_start, CALL_START)
TRACED(request_startall, CALL_STARTALL)
TRACED(request_waitall_objects, CALL_WAITALL_OBJECTS)

PyMethodDef request_methods[] = {
    HOT_METHOD("Wait", traced_request_wait, "($self, status=None)"),
    HOT_METHOD("wait", traced_request_wait_object, "($self, status=None)"),
    HOT_METHOD("Test", traced_request_test, "($self, status=None)"),
    HOT_METHOD("Start", traced_request_start, "($self)"),
    HOT_CLASS_METHOD("Startall", traced_request_startall, "($cls, requests)"),
    HOT_CLASS_METHOD("waitall", traced_request_waitall_objects, "($cls, requests, statuses=None)"),
    {0}};
