/* The raw calls about memory: buffers of a program's objects, and memory that the core gives out. */
#include "ndarray.h"
#include "raw.h"
#include "_cgo_export.h"

/* buffer_info(obj, writable) -> (address, nbytes, format, itemsize, readonly, holder) */
static PyObject *raw_buffer_info(ARGS) {
  if (n != 2) return PyErr_Format(PyExc_TypeError, "buffer_info takes 2 arguments");
  HolderObject *h = allocate(HolderType);
  if (!h) return NULL;
  int flags = PyBUF_ANY_CONTIGUOUS | PyBUF_FORMAT | (PyObject_IsTrue(args[1]) ? PyBUF_WRITABLE : 0);
  if (get_buffer(args[0], &h->view, flags) < 0) {
    h->view.obj = NULL;
    Py_DECREF(h);
    return NULL;
  }
  if (watch(args[0], h->view.len) < 0) {
    Py_DECREF(h);
    return NULL;
  }
  return Py_BuildValue("LnsniN", (long long)(intptr_t)h->view.buf, h->view.len, h->view.format, h->view.itemsize,
                       h->view.readonly, (PyObject *)h);
}

/* is_read_here(obj) -> whether ndarray.c reads its memory, rather than its class. */
static PyObject *raw_is_read_here(PyObject *self, PyObject *o) {
  Py_buffer view;
  int read = ndarray_buffer(o, &view, PyBUF_ANY_CONTIGUOUS | PyBUF_FORMAT);
  if (read) PyBuffer_Release(&view);
  return PyBool_FromLong(read);
}

/* alloc_mem(bytes, alignment) -> Memory; an alignment of 0 is any. */
static PyObject *raw_alloc_mem(ARGS) {
  int64_t a[2], addr = 0, held = 0;
  if (integers("alloc_mem", args, n, 2, a) < 0) return NULL;
  int code = gm_alloc_mem(a[0], a[1], &addr, &held);
  if (code) return raise_code(code);
  return PyObject_CallFunction((PyObject *)MemoryType, "LLL", (long long)held, (long long)addr, (long long)a[0]);
}

/* retain(object): it lives, whatever Python does, also at the end of the
   interpreter, until release(object). */
static PyObject *raw_retain(ARGS) {
  if (n != 1) return PyErr_Format(PyExc_TypeError, "retain takes 1 argument");
  Py_INCREF(args[0]);
  Py_RETURN_NONE;
}

static PyObject *raw_release(ARGS) {
  if (n != 1) return PyErr_Format(PyExc_TypeError, "release takes 1 argument");
  Py_DECREF(args[0]); /* the caller has one more */
  Py_RETURN_NONE;
}

PyMethodDef raw_memory_methods[] = {F(buffer_info),
                                    {"is_read_here", raw_is_read_here, METH_O, NULL},
                                    F(alloc_mem),
                                    F(retain),
                                    F(release),
                                    {"address", address_of, METH_O, NULL},
                                    {"watch", (PyCFunction)(void *)raw_watch, METH_FASTCALL, NULL},
                                    {0}};
