/* Errors and waits: what becomes of the code of a call, and of a call that a signal has interrupted. */
#include "shim.h"
#include "_cgo_export.h"

#include <unistd.h>

int gm_forked;
uint32_t gm_forks;
volatile int gm_python_over;
PyObject *exception_class;

int check_process(void) {
  if (!gm_forked) return 0;
  PyErr_SetString(PyExc_RuntimeError,
                  "this process was forked from an MPI process: it can't use MPI (start it with the multiprocessing "
                  "method 'spawn', or with subprocess)");
  return -1;
}

void stay_forever(void) {
  for (;;) pause();
}

PyObject *raise_code(int code) {
  PyObject *e = PyObject_CallFunction(exception_class ? exception_class : PyExc_RuntimeError, "i", code);
  if (e) {
    PyErr_SetObject((PyObject *)Py_TYPE(e), e);
    Py_DECREF(e);
  }
  return NULL;
}

/* As Python's own sentences have it: that of a type made in C begins with its module. */
const char *type_name(PyObject *o) {
  static char kept[128];
  PyObject *type = (PyObject *)Py_TYPE(o), *module = NULL;
  PyObject *name = PyObject_GetAttrString(type, "__name__");
  if (!(PyType_GetFlags(Py_TYPE(o)) & Py_TPFLAGS_HEAPTYPE)) module = PyObject_GetAttrString(type, "__module__");
  const char *n = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
  const char *m = module && PyUnicode_Check(module) ? PyUnicode_AsUTF8AndSize(module, NULL) : NULL;
  int plain = !m || strcmp(m, "builtins") == 0;
  snprintf(kept, sizeof kept, "%s%s%s", plain ? "" : m, plain ? "" : ".", n ? n : "object");
  Py_XDECREF(name);
  Py_XDECREF(module);
  PyErr_Clear();
  return kept;
}

PyObject *none_or(int code) {
  if (code == 0) Py_RETURN_NONE;
  return code == RAISED ? NULL : raise_code(code);
}

int resume(int64_t pending, gm_status *st) {
  int code = RAISED;
  if (PyErr_CheckSignals() == 0) RESTARTING(code, gm_wait(pending, st));
  if (code == RAISED) WITHOUT_GIL(gm_abandon(pending, 1));
  return code;
}
