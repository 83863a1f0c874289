/* The raw calls of groups: those that programs make again and again. The others are pybind/core's. */
#include "raw.h"
#include "_cgo_export.h"

/* group_incl(group, ranks) -> the handle of the group of these ranks, an array of C ints */
static PyObject *raw_group_incl(ARGS) {
  int64_t group;
  Py_buffer ranks;
  if (n != 2) return PyErr_Format(PyExc_TypeError, "group_incl takes 2 arguments");
  if (integers("group_incl group", args, 1, 1, &group) < 0 || PyObject_GetBuffer(args[1], &ranks, PyBUF_SIMPLE) < 0)
    return NULL;
  int64_t made = gm_group_incl(group, (int64_t)(intptr_t)ranks.buf, ranks.len / (Py_ssize_t)sizeof(int));
  PyBuffer_Release(&ranks);
  return made < 0 ? raise_code((int)-made) : PyLong_FromLongLong(made);
}

static PyObject *raw_group_free(ARGS) {
  int64_t group;
  if (integers("group_free", args, n, 1, &group) < 0) return NULL;
  return none_or(gm_group_free(group));
}

PyMethodDef raw_group_methods[] = {F(group_incl), F(group_free), {0}};
