/* Arguments and results of the raw calls; see raw.h. */
#include "raw.h"
#include "_cgo_export.h"

/* Says which argument is no integer. */
static int no_integer(const char *name, Py_ssize_t i, PyObject *o) {
  if (!PyErr_ExceptionMatches(PyExc_TypeError)) return -1;
  const char *word = name;
  for (Py_ssize_t k = 0; k <= i && word; k++)
    if ((word = strchr(word, ' '))) word++;
  if (!word || !*word) return -1;
  char argument[32]; /* PyErr_Format can't take the length of a string */
  snprintf(argument, sizeof argument, "%.*s", (int)strcspn(word, " "), word);
  PyErr_Clear();
  PyErr_Format(PyExc_TypeError, "%s: expecting an integer, got %s", argument, type_name(o));
  return -1;
}

int integers(const char *name, PyObject *const *args, Py_ssize_t n, Py_ssize_t want, int64_t *out) {
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

/* The __index__ of an element may change the list: this is what was in it. */
int64_t *integer_array(PyObject *seq, Py_ssize_t *count) {
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

int status_arg(PyObject *o, gm_status **st) {
  *st = NULL;
  if (o == Py_None) return 0;
  if (!PyObject_TypeCheck(o, StatusType)) {
    PyErr_Format(PyExc_TypeError, "status: expecting a Status or None, not %s", type_name(o));
    return -1;
  }
  *st = &((StatusObject *)o)->st;
  return 0;
}

StartedObject *started_arg(PyObject *o) {
  if (Py_TYPE(o) == StartedType) return (StartedObject *)o;
  PyErr_Format(PyExc_TypeError, "expecting what a call has started, not %s", type_name(o));
  return NULL;
}

PyObject *handle_or(int code, int64_t h) { return code ? none_or(code) : PyLong_FromLongLong(h); }

PyObject *started_or(int code, int64_t req, PyObject *holder) {
  if (code) return none_or(code);
  StartedObject *s = allocate(StartedType);
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

int wait_request(int64_t req, gm_status *st) {
  int code;
  RESTARTING(code, gm_wait(req, st));
  return code;
}
