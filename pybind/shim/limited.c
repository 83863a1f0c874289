/* What CPython 3.10 lacks: see limited.h. */
#include "limited.h"

PyObject *call_without_vector(PyObject *f, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
  Py_ssize_t n = (Py_ssize_t)(nargsf & (SIZE_MAX >> 1)); /* the highest bit lends the place before args */
  Py_ssize_t k = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  PyObject *positional = PyTuple_New(n), *named = k ? PyDict_New() : NULL, *result = NULL;
  int failed = !positional || (k && !named);
  for (Py_ssize_t i = 0; !failed && i < n; i++) {
    Py_INCREF(args[i]);
    PyTuple_SET_ITEM(positional, i, args[i]);
  }
  for (Py_ssize_t i = 0; !failed && i < k; i++)
    failed = PyDict_SetItem(named, PyTuple_GET_ITEM(kwnames, i), args[n + i]) < 0;
  if (!failed) result = PyObject_Call(f, positional, named);
  Py_XDECREF(positional);
  Py_XDECREF(named);
  return result;
}
