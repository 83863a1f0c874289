/* Buffers of the hot methods: a specification (an object, or a list with a datatype and maybe a count) read
   as address, count and datatype. It takes what is dense and contiguous, of messages also what lies apart in a contiguous
   buffer, and leaves the rest to Python.

   Python tells it, when MPI is imported, which datatype a format character stands for, and who watches
   large objects that are communicated. */
#include "shim.h"

#include <string.h>

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
  int parts = f[0] == 'Z' && f[1] && strchr("fdg", f[1]); /* of a complex number, in the table as F, D and G */
  int c = parts ? f[1] - 'a' + 'A' : f[0];
  if (c <= 0 || f[1 + parts] != 0) return -1;
  if (formats[c].type == 0 || formats[c].size != v->itemsize) return -1;
  *type = formats[c].type;
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

/* A buffer b with a datatype t and a count c, or NULL. apart: the items may have gaps; who says how many there are vouches for
   them, as in Python. */
static int parse_items(PyObject *b, PyObject *t, PyObject *c, int writable, int apart, spec *s) {
  int vouched = 0;
  int64_t item;
  s->apart = 0;
  if (b == Py_None || !PyObject_CheckBuffer(b)) return -1;
  /* NumPy takes its time to spell out a format: only where it is needed. */
  int flags = PyBUF_ANY_CONTIGUOUS | (t ? 0 : PyBUF_FORMAT) | (writable ? PyBUF_WRITABLE : 0);
  if (get_buffer(b, &s->view, flags) < 0) {
    PyErr_Clear();
    return -1;
  }
  if (t) {
    DatatypeObject *d = (DatatypeObject *)t;
    if (d->shape.size <= 0) goto unusual;
    item = d->shape.extent;
    if (!datatype_communicates(d)) {
      if (!apart || item <= 0) goto unusual;
      if (d->shape.word) { /* a derived one */
        if (!c || !datatype_is_committed(d)) goto unusual;
        vouched = 1;
      } else if (d->h <= 0) {
        goto unusual;
      } /* else a pair with padding */
      s->apart = 1;
    }
    s->type = d->h;
    s->size = d->shape.size;
  } else {
    if (from_format(&s->view, &s->type) < 0) goto unusual;
    s->size = item = s->view.itemsize;
  }
  if (c) {
    if (!PyLong_Check(c) || parse_int(c, &s->count) < 0 || s->count < 0 ||
        s->count > (vouched ? INT64_MAX / s->size : s->view.len / item))
      goto unusual;
  } else {
    s->count = s->view.len / item;
    if (s->count * item != s->view.len) goto unusual;
  }
  if (watch(b, s->view.len) < 0) goto unusual;
  return 0;
unusual:
  PyBuffer_Release(&s->view);
  return -1;
}

int parse_buffer(PyObject *b, PyObject *t, int writable, spec *s) {
  if (t && (PyObject *)Py_TYPE(t) != datatype_class && !PyObject_TypeCheck(t, DatatypeType)) return -1;
  return parse_items(b, t, NULL, writable, 0, s);
}

static int parse(PyObject *o, int writable, int apart, spec *s) {
  if (!PyList_CheckExact(o) && !PyTuple_CheckExact(o)) return parse_items(o, NULL, NULL, writable, apart, s);
  Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
  if (n < 2 || n > 3) return -1;
  PyObject *b = PySequence_Fast_GET_ITEM(o, 0), *t = PySequence_Fast_GET_ITEM(o, n - 1);
  PyObject *c = n == 3 ? PySequence_Fast_GET_ITEM(o, 1) : NULL;
  if ((PyObject *)Py_TYPE(t) != datatype_class && !PyObject_TypeCheck(t, DatatypeType)) return -1;
  /* A list may change when the buffer is asked for, which may run Python. */
  Py_INCREF(b), Py_INCREF(t), Py_XINCREF(c);
  int rc = parse_items(b, t, c, writable, apart, s);
  Py_DECREF(b), Py_DECREF(t), Py_XDECREF(c);
  return rc;
}

int parse_spec(PyObject *o, int writable, spec *s) { return parse(o, writable, 0, s); }
int parse_message(PyObject *o, int writable, spec *s) { return parse(o, writable, 1, s); }
