/* The raw calls on several requests: Waitall, Testsome and the like. They take a sequence of handles, and
   say in a list of codes which requests have ended, so that Python retires these and no others. */
#include "raw.h"
#include "_cgo_export.h"

static gm_status *status_at(PyObject *list, Py_ssize_t i) {
  if (list == NULL || list == Py_None || !PyList_Check(list) || i >= PyList_GET_SIZE(list)) return NULL;
  PyObject *o = PyList_GET_ITEM(list, i);
  return PyObject_TypeCheck(o, StatusType) ? &((StatusObject *)o)->st : NULL;
}

/* What the calls for several requests take: their handles, as an array to be freed with
   PyMem_Free, and a list of as many codes, each None until its request has ended. */
static int64_t *several(PyObject *const *args, Py_ssize_t n, Py_ssize_t *count) {
  if (n != 3) {
    PyErr_Format(PyExc_TypeError, "takes 3 arguments (%zd given)", n);
    return NULL;
  }
  if (check_process() < 0) return NULL;
  int64_t *reqs = integer_array(args[0], count);
  if (reqs && (!PyList_CheckExact(args[2]) || PyList_GET_SIZE(args[2]) != *count)) {
    PyMem_Free(reqs);
    PyErr_Format(PyExc_TypeError, "expecting a list of %zd codes", *count);
    return NULL;
  }
  return reqs;
}

/* several, for the calls that fill one status or none. */
static int64_t *several_and_status(PyObject *const *args, Py_ssize_t n, Py_ssize_t *count, gm_status **st) {
  int64_t *reqs = several(args, n, count);
  if (reqs && status_arg(args[1], st) < 0) {
    PyMem_Free(reqs);
    return NULL;
  }
  return reqs;
}

/* Request i has ended, with a code. */
static void ended(PyObject *codes, Py_ssize_t i, int code) {
  if (may_complete(code)) return;
  PyObject *value = PyLong_FromLong(code);
  if (!value || PyList_SetItem(codes, i, value) < 0) PyErr_Clear();
}

/* waitall(requests, statuses or None, codes). On the first error the rest is still
   waited for, then that error is raised. If a signal handler raises an exception, those
   whose code is set have ended, and the others have not. */
static PyObject *raw_waitall(ARGS) {
  Py_ssize_t count;
  int first = 0;
  int64_t *reqs = several(args, n, &count);
  if (!reqs) return NULL;
  int awaited;
  RESTARTING(awaited, gm_await(reqs, (int)count));
  if (awaited == RAISED) {
    PyMem_Free(reqs);
    return NULL;
  }
  for (Py_ssize_t i = 0; i < count; i++) {
    gm_status own, *st = status_at(args[1], i);
    int code = wait_request(reqs[i], st ? st : &own);
    if (code == RAISED) {
      PyMem_Free(reqs);
      return NULL;
    }
    ended(args[2], i, code);
    if (code && !first) first = code;
  }
  PyMem_Free(reqs);
  return none_or(first);
}

/* testall(requests, statuses or None, codes): True if all are complete, and then all
   are finished. */
static PyObject *raw_testall(ARGS) {
  Py_ssize_t count;
  int code = 0, all = 0;
  int64_t *reqs = several(args, n, &count);
  if (!reqs) return NULL;
  int *ends = PyMem_Malloc((count + 1) * sizeof *ends);
  gm_status *sts = PyMem_Malloc((count + 1) * sizeof *sts);
  PyObject *out = NULL;
  if (!ends || !sts) {
    PyErr_NoMemory();
    goto end;
  }
  for (Py_ssize_t i = 0; i < count; i++) ends[i] = GM_INTERRUPTED;
  WITHOUT_GIL(code = gm_testall(reqs, (int)count, sts, ends, &all));
  for (Py_ssize_t i = 0; i < count; i++) {
    gm_status *st = status_at(args[1], i);
    if (ends[i] == GM_INTERRUPTED) continue; /* it is under way */
    if (st) *st = sts[i];
    ended(args[2], i, ends[i]);
  }
  out = code ? raise_code(code) : PyBool_FromLong(all);
end:
  PyMem_Free(reqs);
  PyMem_Free(ends);
  PyMem_Free(sts);
  return out;
}

/* waitany(requests, status, codes) -> index */
static PyObject *raw_waitany(ARGS) {
  Py_ssize_t count;
  int code, index = -1;
  gm_status *st, own;
  int64_t *reqs = several_and_status(args, n, &count, &st);
  if (!reqs) return NULL;
  RESTARTING(code, gm_waitany(reqs, (int)count, st ? st : &own, &index));
  PyMem_Free(reqs);
  if (code == RAISED) return NULL;
  if (index >= 0) ended(args[2], index, code);
  return code ? raise_code(code) : PyLong_FromLong(index);
}

/* testany(requests, status, codes) -> (index, flag) */
static PyObject *raw_testany(ARGS) {
  Py_ssize_t count;
  gm_status *st, own;
  int64_t *reqs = several_and_status(args, n, &count, &st);
  if (!reqs) return NULL;
  int code = 0, index = -1, flag = 0;
  WITHOUT_GIL(code = gm_testany(reqs, (int)count, st ? st : &own, &index, &flag));
  PyMem_Free(reqs);
  if (index >= 0) ended(args[2], index, code);
  return code ? raise_code(code) : Py_BuildValue("iO", index, flag ? Py_True : Py_False);
}

/* testsome(requests, statuses or None, codes) -> indices, or None if none is active;
   waitsome likewise, but at least one. The status of a request has its index in the list. */
static PyObject *some(PyObject *const *args, Py_ssize_t n, int wait) {
  Py_ssize_t count;
  int64_t *reqs = several(args, n, &count);
  if (!reqs) return NULL;
  int *indices = PyMem_Malloc((count + 1) * sizeof *indices), *codes = PyMem_Malloc((count + 1) * sizeof *codes);
  gm_status *sts = PyMem_Malloc((count + 1) * sizeof *sts);
  PyObject *out = NULL;
  int k = 0, code = 0;
  if (!indices || !codes || !sts) {
    PyErr_NoMemory();
    goto end;
  }
  RESTARTING(code, gm_some(reqs, (int)count, indices, sts, codes, wait, &k));
  if (code || k < 0) {
    out = none_or(code);
    goto end;
  }
  for (int i = 0; i < k && !code; i++) code = codes[i];
  for (int i = 0; i < k; i++) {
    gm_status *to = status_at(args[1], indices[i]);
    if (to) *to = sts[i];
    ended(args[2], indices[i], codes[i]);
  }
  if (code) {
    raise_code(code);
    goto end;
  }
  out = PyList_New(k);
  for (int i = 0; out && i < k; i++) PyList_SET_ITEM(out, i, PyLong_FromLong(indices[i]));
end:
  PyMem_Free(reqs);
  PyMem_Free(indices);
  PyMem_Free(codes);
  PyMem_Free(sts);
  return out;
}

static PyObject *raw_waitsome(ARGS) { return some(args, n, 1); }
static PyObject *raw_testsome(ARGS) { return some(args, n, 0); }

PyMethodDef raw_request_list_methods[] = {F(waitall),  F(testall),  F(waitany), F(testany),
                                          F(waitsome), F(testsome), {0}};
