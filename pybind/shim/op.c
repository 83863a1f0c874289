/* The predefined reduction operations, told by their objects: Op objects have a handle attribute, which would
   take longer to ask for. */
#include "shim.h"

PyObject *op_objects[MOST_OPS];

/* set_op(number, object), when MPI is imported. */
PyObject *set_op(PyObject *self, PyObject *args) {
  int i;
  PyObject *o;
  if (!PyArg_ParseTuple(args, "iO", &i, &o)) return NULL;
  if (i < 0 || i >= MOST_OPS) return PyErr_Format(PyExc_ValueError, "operation %d", i);
  Py_INCREF(o);
  Py_XSETREF(op_objects[i], o);
  Py_RETURN_NONE;
}
