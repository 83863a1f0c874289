/* The raw calls about this process as a rank: what Python tells the extension when MPI is imported, the
   end, the collective reset. */
#include "raw.h"
#include "userop.h"
#include "_cgo_export.h"

PyObject *request_class, *prequest_class, *in_place;

/* setup(exception class[, request class, persistent request class, MPI.IN_PLACE, Datatype, Intracomm, Message, Group]) */
static PyObject *setup(PyObject *self, PyObject *args) {
  PyObject *e, *r = NULL, *p = NULL, *ip = NULL, *d = NULL, *c = NULL, *m = NULL, *g = NULL;
  if (!PyArg_ParseTuple(args, "O|OOOOOOO", &e, &r, &p, &ip, &d, &c, &m, &g)) return NULL;
  Py_INCREF(e);
  Py_XSETREF(exception_class, e);
  Py_XINCREF(r);
  Py_XSETREF(request_class, r);
  Py_XINCREF(p);
  Py_XSETREF(prequest_class, p);
  Py_XINCREF(ip);
  Py_XSETREF(in_place, ip);
  Py_XINCREF(d);
  Py_XSETREF(datatype_class, d);
  Py_XINCREF(c);
  Py_XSETREF(intracomm_class, c);
  Py_XINCREF(m);
  Py_XSETREF(message_class, m);
  Py_XINCREF(g);
  Py_XSETREF(group_class, g);
  Py_RETURN_NONE;
}

static PyObject *finalize(void) {
  int code = 0;
  RESTARTING(code, gm_finalize(1));
  if (code == RAISED) gm_finalize(0);
  return none_or(code);
}

static PyObject *raw_finalize(PyObject *self, PyObject *noargs) {
  if (gm_forked) Py_RETURN_NONE;
  if (!TRACING) return finalize();
  trace_open(TRACE_FINALIZE);
  PyObject *result = finalize();
  trace_close(result != NULL);
  return result;
}

static PyObject *raw_reset(PyObject *self, PyObject *noargs) {
  int code = 0;
  if (check_process() < 0) return NULL;
  RESTARTING(code, gm_reset());
  return none_or(code);
}

static PyObject *raw_abort(ARGS) {
  int64_t a[2];
  if (integers("abort", args, n, 2, a) < 0) return NULL;
  gm_abort(a[1]);
  Py_RETURN_NONE;
}

/* arm_guard(forget): see guard.c. */
static PyObject *raw_arm_guard(PyObject *self, PyObject *forget) {
  guard_arm(PyObject_IsTrue(forget));
  Py_RETURN_NONE;
}

PyMethodDef raw_process_methods[] = {{"setup", setup, METH_VARARGS, NULL},
                                     {"set_format", set_format, METH_VARARGS, NULL},
                                     {"set_fallback", set_fallback, METH_VARARGS, NULL},
                                     {"document", raw_document, METH_VARARGS, NULL},
                                     {"set_threads", set_threads, METH_O, NULL},
                                     {"set_op", set_op, METH_VARARGS, NULL},
                                     {"set_functions", set_functions, METH_VARARGS, NULL},
                                     {"set_registries", set_registries, METH_VARARGS, NULL},
                                     {"finalize", raw_finalize, METH_NOARGS, NULL},
                                     {"reset", raw_reset, METH_NOARGS, NULL},
                                     F(abort),
                                     {"compiled_addresses", compiled_addresses, METH_NOARGS, NULL},
                                     {"arm_guard", raw_arm_guard, METH_O, NULL},
                                     {"trace", trace_switch, METH_O, NULL},
                                     {"trace_mark", trace_mark, METH_NOARGS, NULL},
                                     {"trace_part", trace_part, METH_VARARGS, NULL},
                                     {0}};
