/* Arguments of the hot methods. What does not fit is left to the Python method of the same name, which
   parses it again and says what is wrong: nothing here sets an exception. */
#include "shim.h"

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

int parse_small_int(PyObject *o, int64_t *v) {
  return o ? (parse_int(o, v) < 0 || *v < INT32_MIN || *v > INT32_MAX ? -1 : 0) : 0;
}

int match_args(const char *const *names, int required, PyObject *const *args, Py_ssize_t n, PyObject *kwnames,
               PyObject **out) {
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
