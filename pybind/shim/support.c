/* Errors, waiting, arguments and buffers for all calls of the shim. */
#include "shim.h"
#include "_cgo_export.h"

int gm_forked;
PyObject *exception_class, *request_class, *prequest_class, *in_place;

int check_process(void) {
  if (!gm_forked) return 0;
  PyErr_SetString(PyExc_RuntimeError,
                  "this process was forked from an MPI process: it can't use MPI (start it with the multiprocessing "
                  "method 'spawn', or with subprocess)");
  return -1;
}

PyObject *raise_code(int code) {
  PyObject *e = PyObject_CallFunction(exception_class ? exception_class : PyExc_RuntimeError, "i", code);
  if (e) {
    PyErr_SetObject((PyObject *)Py_TYPE(e), e);
    Py_DECREF(e);
  }
  return NULL;
}

int resume(int64_t pending, gm_status *st) {
  int code;
  do {
    if (PyErr_CheckSignals() < 0) {
      Py_BEGIN_ALLOW_THREADS gm_abandon(pending, 1);
      Py_END_ALLOW_THREADS return -2;
    }
    Py_BEGIN_ALLOW_THREADS code = gm_wait(pending, st);
    Py_END_ALLOW_THREADS
  } while (code == GM_INTERRUPTED);
  return code;
}

int long_copy(void *to, const void *from, Py_ssize_t n) {
  int faulted;
  if (n <= LONG_COPY) return guarded_copy(to, from, n);
  Py_BEGIN_ALLOW_THREADS faulted = guarded_copy(to, from, n);
  Py_END_ALLOW_THREADS return faulted;
}

PyObject *none_or(int code) {
  if (code == 0) Py_RETURN_NONE;
  return code == -2 ? NULL : raise_code(code);
}

int parse_int(PyObject *o, int64_t *out) {
  if (!PyLong_Check(o)) {
    PyObject *i = PyNumber_Index(o);
    if (!i) {
      PyErr_Clear();
      return -1;
    }
    *out = PyLong_AsLongLong(i);
    Py_DECREF(i);
  } else {
    *out = PyLong_AsLongLong(o);
  }
  if (*out == -1 && PyErr_Occurred()) {
    PyErr_Clear();
    return -1;
  }
  return 0;
}

/* Datatypes by format character, set from Python when MPI is imported. */
static struct {
  int64_t type, size;
} formats[128];

PyObject *set_format(PyObject *self, PyObject *args) {
  int c;
  long long type, size;
  if (!PyArg_ParseTuple(args, "CLL", &c, &type, &size)) return NULL;
  if (c > 0 && c < 128) formats[c].type = type, formats[c].size = size;
  Py_RETURN_NONE;
}

static int from_format(const Py_buffer *v, int64_t *type) {
  const char *f = v->format ? v->format : "B";
  if (*f == '@' || *f == '=' || *f == '<') f++;
  if (f[0] <= 0 || f[1] != 0) return -1;
  if (formats[(int)f[0]].type == 0 || formats[(int)f[0]].size != v->itemsize) return -1;
  *type = formats[(int)f[0]].type;
  return 0;
}

/* Called with objects whose memory of watch_from bytes or more is about to be
 * communicated; see gormapy.MPI.registration. */
static PyObject *watcher;
static Py_ssize_t watch_from = PY_SSIZE_T_MAX;

PyObject *raw_watch(PyObject *self, PyObject *const *args, Py_ssize_t n) {
  if (n != 2) {
    PyErr_SetString(PyExc_TypeError, "watch takes a number of bytes and a callable");
    return NULL;
  }
  Py_ssize_t from = PyLong_AsSsize_t(args[0]);
  if (from == -1 && PyErr_Occurred()) return NULL;
  Py_INCREF(args[1]);
  Py_XSETREF(watcher, args[1]);
  watch_from = from;
  Py_RETURN_NONE;
}

int watch(PyObject *o, Py_ssize_t n) {
  if (n < watch_from) return 0;
  PyObject *r = PyObject_CallOneArg(watcher, o);
  Py_XDECREF(r);
  return r ? 0 : -1;
}

/* A buffer b with a datatype t and a count c, or NULL. */
static int parse_items(PyObject *b, PyObject *t, PyObject *c, int writable, spec *s) {
  if (b == Py_None || !PyObject_CheckBuffer(b)) return -1;
  /* NumPy takes its time to spell out a format: only where it is needed. */
  int flags = PyBUF_ANY_CONTIGUOUS | (t ? 0 : PyBUF_FORMAT) | (writable ? PyBUF_WRITABLE : 0);
  if (PyObject_GetBuffer(b, &s->view, flags) < 0) {
    PyErr_Clear();
    return -1;
  }
  if (t) {
    DatatypeObject *d = (DatatypeObject *)t;
    if (!d->dense || d->size <= 0 || d->h <= 0) goto unusual;
    s->type = d->h;
    s->size = d->size;
  } else {
    if (from_format(&s->view, &s->type) < 0) goto unusual;
    s->size = s->view.itemsize;
  }
  if (c) {
    if (!PyLong_Check(c) || parse_int(c, &s->count) < 0 || s->count < 0 || s->count > s->view.len / s->size) goto unusual;
  } else {
    s->count = s->view.len / s->size;
    if (s->count * s->size != s->view.len) goto unusual;
  }
  if (watch(b, s->view.len) < 0) goto unusual;
  return 0;
unusual:
  PyBuffer_Release(&s->view);
  return -1;
}

int parse_spec(PyObject *o, int writable, spec *s) {
  if (!PyList_CheckExact(o) && !PyTuple_CheckExact(o)) return parse_items(o, NULL, NULL, writable, s);
  Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
  if (n < 2 || n > 3) return -1;
  PyObject *b = PySequence_Fast_GET_ITEM(o, 0), *t = PySequence_Fast_GET_ITEM(o, n - 1);
  PyObject *c = n == 3 ? PySequence_Fast_GET_ITEM(o, 1) : NULL;
  if (!PyObject_TypeCheck(t, &DatatypeType)) return -1;
  /* A list may change when the buffer is asked for, which may run Python. */
  Py_INCREF(b), Py_INCREF(t), Py_XINCREF(c);
  int rc = parse_items(b, t, c, writable, s);
  Py_DECREF(b), Py_DECREF(t), Py_XDECREF(c);
  return rc;
}

int match_args(const char *const *names, int required, PyObject *const *args, Py_ssize_t n, PyObject *kwnames, PyObject **out) {
  int max = 0;
  while (names[max]) out[max++] = NULL;
  if (n > max) return -1;
  for (Py_ssize_t i = 0; i < n; i++) out[i] = args[i];
  if (kwnames) {
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(kwnames); k++) {
      PyObject *name = PyTuple_GET_ITEM(kwnames, k);
      int i = 0;
      while (names[i] && PyUnicode_CompareWithASCIIString(name, names[i]) != 0) i++;
      if (!names[i] || out[i]) return -1;
      out[i] = args[n + k];
    }
  }
  for (int i = 0; i < required; i++)
    if (!out[i]) return -1;
  return 0;
}

static PyObject *slow[SLOW_COUNT];

const char *const hot_names[SLOW_COUNT + 1] = {
    "Win.Put", "Win.Get", "Win.Accumulate", "Win.Fetch_and_op", "Win.Compare_and_swap", "Win.Flush", "Win.Flush_local",
    "Win.Flush_all", "Win.Flush_local_all", "Win.Lock", "Win.Unlock", "Win.Fence", "Comm.Send", "Comm.Recv",
    "Comm.Isend", "Comm.Irecv", "Comm.Barrier", "Request.Wait", "Request.Test", "Prequest.Start", "Request.Waitall",
    "Prequest.Startall", "Comm.Allreduce", "Comm.Bcast", NULL};

/* Has a method of the extension the docstring that the Python method of the same name has. */
static int document(const char *name, const char *doc) {
  for (PyMethodDef *tables[] = {comm_methods, request_methods, win_methods, NULL}, **t = tables; *t; t++) {
    for (PyMethodDef *m = *t; m->ml_name; m++) {
      if (strcmp(m->ml_name, name) != 0) continue;
      size_t signature = strstr(m->ml_doc, SIGNATURE_END) - m->ml_doc + strlen(SIGNATURE_END);
      if (strcmp(m->ml_doc + signature, doc) == 0) return 0;
      char *both = malloc(signature + strlen(doc) + 1); /* for good: somebody may be reading the old one */
      if (!both) {
        PyErr_NoMemory();
        return -1;
      }
      memcpy(both, m->ml_doc, signature);
      strcpy(both + signature, doc);
      m->ml_doc = both;
      return 0;
    }
  }
  return 0;
}

/* set_slow(name, function, docstring) */
PyObject *set_slow(PyObject *self, PyObject *args) {
  const char *name, *doc;
  PyObject *f;
  if (!PyArg_ParseTuple(args, "sOs", &name, &f, &doc)) return NULL;
  for (int i = 0; i < SLOW_COUNT; i++) {
    if (strcmp(name, hot_names[i]) == 0) {
      if (document(strchr(name, '.') + 1, doc) < 0) return NULL;
      Py_INCREF(f);
      Py_XSETREF(slow[i], f);
      Py_RETURN_NONE;
    }
  }
  return PyErr_Format(PyExc_KeyError, "%s is no hot method", name);
}

PyObject *call_slow(int which, PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames) {
  if (PyErr_Occurred() || check_process() < 0) return NULL;
  if (!slow[which]) return PyErr_Format(PyExc_RuntimeError, "gormapy.MPI is not imported");
  Py_ssize_t nk = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  PyObject *stack[16];
  if (n + nk + 1 > 16) return PyErr_Format(PyExc_TypeError, "%s: too many arguments", hot_names[which]);
  stack[0] = self;
  for (Py_ssize_t i = 0; i < n + nk; i++) stack[i + 1] = args[i];
  return PyObject_Vectorcall(slow[which], stack, n + 1, kwnames);
}
