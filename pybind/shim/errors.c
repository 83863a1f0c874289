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
