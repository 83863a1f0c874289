/* The Python methods that the hot methods stand in for: they are called with the same arguments where these are
   unusual or wrong, and lend their docstrings. */
#include "shim.h"

static PyObject *slow[SLOW_COUNT];

const char *const hot_names[SLOW_COUNT] = {
    [SLOW_PUT] = "Win.Put",
    [SLOW_GET] = "Win.Get",
    [SLOW_ACCUMULATE] = "Win.Accumulate",
    [SLOW_FETCH_AND_OP] = "Win.Fetch_and_op",
    [SLOW_COMPARE_AND_SWAP] = "Win.Compare_and_swap",
    [SLOW_FLUSH] = "Win.Flush",
    [SLOW_FLUSH_LOCAL] = "Win.Flush_local",
    [SLOW_FLUSH_ALL] = "Win.Flush_all",
    [SLOW_FLUSH_LOCAL_ALL] = "Win.Flush_local_all",
    [SLOW_LOCK] = "Win.Lock",
    [SLOW_UNLOCK] = "Win.Unlock",
    [SLOW_FENCE] = "Win.Fence",
    [SLOW_SEND] = "Comm.Send",
    [SLOW_RECV] = "Comm.Recv",
    [SLOW_ISEND] = "Comm.Isend",
    [SLOW_IRECV] = "Comm.Irecv",
    [SLOW_BARRIER] = "Comm.Barrier",
    [SLOW_WAIT] = "Request.Wait",
    [SLOW_TEST] = "Request.Test",
    [SLOW_START] = "Prequest.Start",
    [SLOW_WAITALL] = "Request.Waitall",
    [SLOW_STARTALL] = "Prequest.Startall",
    [SLOW_ALLREDUCE] = "Comm.Allreduce",
    [SLOW_BCAST] = "Comm.Bcast",
};

/* Has a method of the extension the docstring that the Python method of the same name has. */
static int document(const char *name, const char *doc) {
  for (PyMethodDef *tables[] = {comm_methods, request_methods, win_methods, NULL}, **t = tables; *t; t++) {
    for (PyMethodDef *m = *t; m->ml_name; m++) {
      if (strcmp(m->ml_name, name) != 0) continue;
      size_t signature = strstr(m->ml_doc, SIGNATURE_END) - m->ml_doc + strlen(SIGNATURE_END);
      if (strcmp(m->ml_doc + signature, doc) == 0) return 0;
      char *both = malloc(signature + strlen(doc) + 1); /* for good: somebody may be reading the old one */
      if (!both) {
        PyErr_NoMemory();
        return -1;
      }
      memcpy(both, m->ml_doc, signature);
      strcpy(both + signature, doc);
      m->ml_doc = both;
      return 0;
    }
  }
  return 0;
}

/* set_slow(name, function, docstring) */
PyObject *set_slow(PyObject *self, PyObject *args) {
  const char *name, *doc;
  PyObject *f;
  if (!PyArg_ParseTuple(args, "sOs", &name, &f, &doc)) return NULL;
  for (int i = 0; i < SLOW_COUNT; i++) {
    if (strcmp(name, hot_names[i]) == 0) {
      if (document(strchr(name, '.') + 1, doc) < 0) return NULL;
      Py_INCREF(f);
      Py_XSETREF(slow[i], f);
      Py_RETURN_NONE;
    }
  }
  return PyErr_Format(PyExc_KeyError, "%s is no hot method", name);
}

PyObject *call_slow(int which, PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames) {
  if (PyErr_Occurred() || check_process() < 0) return NULL;
  if (!slow[which]) return PyErr_Format(PyExc_RuntimeError, "gormapy.MPI is not imported");
  Py_ssize_t nk = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  PyObject *stack[16];
  if (n + nk + 1 > 16) return PyErr_Format(PyExc_TypeError, "%s: too many arguments", hot_names[which]);
  stack[0] = self;
  for (Py_ssize_t i = 0; i < n + nk; i++) stack[i + 1] = args[i];
  return PyObject_Vectorcall(slow[which], stack, n + 1, kwnames);
}
