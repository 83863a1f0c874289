/* The predefined reduction operations, told by their objects: Op objects have a handle attribute, which would
   take longer to ask for. */
#include "shim.h"

enum { MOST_OPS = 32 };
static PyObject *op_objects[MOST_OPS]; /* by number */

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

/* NULL stands for the default. */
int op_number(PyObject *o) {
  if (!o) return GM_OP_SUM;
  for (int i = 1; i < MOST_OPS && op_objects[i]; i++)
    if (op_objects[i] == o) return i;
  return -1;
}
