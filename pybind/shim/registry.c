/* What Python keeps beside an object: dictionaries by family and handle, and by handle. The hot methods look whether there
   is anything of a handle; what is there is for the Python methods. */
#include "shim.h"

/* In the order of set_registries. Those of all families come first, with keys (family, handle). */
static PyObject *registries[REGISTRIES];

/* set_registries(names, attributes, …): dictionaries, which stay the same. */
PyObject *set_registries(PyObject *self, PyObject *args) {
  if (PyTuple_GET_SIZE(args) != REGISTRIES)
    return PyErr_Format(PyExc_TypeError, "expecting %d dictionaries", REGISTRIES);
  for (int i = 0; i < REGISTRIES; i++) {
    PyObject *d = PyTuple_GET_ITEM(args, i);
    if (!PyDict_CheckExact(d)) return PyErr_Format(PyExc_TypeError, "expecting a dictionary");
    Py_INCREF(d);
    Py_XSETREF(registries[i], d);
  }
  Py_RETURN_NONE;
}

int is_registered(const char *family, int64_t h, int last) {
  int found = 0;
  for (int i = 0; i <= last && !found; i++) {
    if (!registries[i]) return 1; /* gormapy.MPI is not imported */
    if (PyDict_GET_SIZE(registries[i]) == 0) continue;
    PyObject *key =
        i <= LAST_OF_ALL_FAMILIES ? Py_BuildValue("(sL)", family, (long long)h) : PyLong_FromLongLong((long long)h);
    if (!key) return -1;
    found = PyDict_Contains(registries[i], key);
    Py_DECREF(key);
  }
  return found;
}
