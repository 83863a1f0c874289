/* Python's stable ABI, so that one build serves every CPython from 3.10 on: what it lacks of what the C files use, and
   the macros of the full API that are functions in it. The build sets Py_LIMITED_API to 3.11, whose buffers it needs.
   3.10 has the same functions of buffers outside of its stable ABI, and 3.11 those of vectorcall; neither version can
   change any more. What 3.10 has as inline functions alone is in limited.c. */
#ifndef LIMITED_H
#define LIMITED_H

#ifndef Py_LIMITED_API
#error "the build sets Py_LIMITED_API: see gormapy_build/extension.py"
#endif
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <structmember.h>

#if PY_VERSION_HEX < 0x030b0000
typedef struct {
  void *buf;
  PyObject *obj;
  Py_ssize_t len, itemsize;
  int readonly, ndim;
  char *format;
  Py_ssize_t *shape, *strides, *suboffsets;
  void *internal;
} Py_buffer;
enum {
  PyBUF_SIMPLE = 0,
  PyBUF_WRITABLE = 1,
  PyBUF_FORMAT = 4,
  PyBUF_ND = 8,
  PyBUF_STRIDES = 0x10 | PyBUF_ND,
  PyBUF_C_CONTIGUOUS = 0x20 | PyBUF_STRIDES,
  PyBUF_ANY_CONTIGUOUS = 0x80 | PyBUF_STRIDES
};
PyAPI_FUNC(int) PyObject_CheckBuffer(PyObject *);
PyAPI_FUNC(int) PyObject_GetBuffer(PyObject *, Py_buffer *, int);
PyAPI_FUNC(int) PyBuffer_IsContiguous(const Py_buffer *, char);
PyAPI_FUNC(int) PyBuffer_FillInfo(Py_buffer *, PyObject *, void *, Py_ssize_t, int, int);
PyAPI_FUNC(void) PyBuffer_Release(Py_buffer *);
#endif
#ifndef Py_bf_getbuffer
#define Py_bf_getbuffer 1
#endif
#ifndef Py_bf_releasebuffer
#define Py_bf_releasebuffer 2
#endif

#ifndef Py_TPFLAGS_HAVE_VECTORCALL
#define Py_TPFLAGS_HAVE_VECTORCALL (1UL << 11)
#endif
typedef PyObject *(*vectorcall)(PyObject *, PyObject *const *, size_t, PyObject *);
PyAPI_FUNC(PyObject *) PyObject_Vectorcall(PyObject *, PyObject *const *, size_t, PyObject *) __attribute__((weak));
PyAPI_FUNC(PyObject *) PyObject_VectorcallMethod(PyObject *, PyObject *const *, size_t, PyObject *)
    __attribute__((weak));
PyAPI_FUNC(PyObject *) PyVectorcall_Call(PyObject *, PyObject *, PyObject *);

/* PyObject_Vectorcall, in 3.10 too. */
PyObject *call_without_vector(PyObject *f, PyObject *const *args, size_t nargsf, PyObject *kwnames);
static inline PyObject *call_vector(PyObject *f, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
  return (PyObject_Vectorcall ? PyObject_Vectorcall : call_without_vector)(f, args, nargsf, kwnames);
}

/* Calls of one argument, which make no tuple of it. */
static inline PyObject *call_one(PyObject *f, PyObject *o) { return call_vector(f, &o, 1, NULL); }
static inline PyObject *call_method(PyObject *self, PyObject *name) {
  return PyObject_VectorcallMethod ? PyObject_VectorcallMethod(name, &self, 1, NULL)
                                   : PyObject_CallMethodObjArgs(self, name, NULL);
}
#define PyObject_CallOneArg call_one
#define PyObject_CallMethodNoArgs call_method

/* What is usual needs no call. */
static inline int is_int(PyObject *o) {
  return Py_TYPE(o) == &PyLong_Type || PyType_HasFeature(Py_TYPE(o), Py_TPFLAGS_LONG_SUBCLASS);
}
static inline int is_list(PyObject *o) {
  return Py_TYPE(o) == &PyList_Type || PyType_HasFeature(Py_TYPE(o), Py_TPFLAGS_LIST_SUBCLASS);
}
#undef PyLong_Check
#define PyLong_Check is_int
#undef PyList_Check
#define PyList_Check is_list

/* The size of these is in the head of the object, which is in the stable ABI. */
#define PyTuple_GET_SIZE(o) Py_SIZE((PyObject *)(o))
#define PyList_GET_SIZE(o) Py_SIZE((PyObject *)(o))
#define PyBytes_GET_SIZE(o) Py_SIZE((PyObject *)(o))
#undef PySequence_Fast_GET_SIZE
#define PySequence_Fast_GET_SIZE(o) Py_SIZE((PyObject *)(o))
#undef PySequence_Fast_GET_ITEM
#define PySequence_Fast_GET_ITEM(o, i) (is_list(o) ? PyList_GetItem(o, i) : PyTuple_GetItem(o, i))
#define PyTuple_GET_ITEM PyTuple_GetItem
#define PyTuple_SET_ITEM PyTuple_SetItem
#define PyList_GET_ITEM PyList_GetItem
#define PyList_SET_ITEM PyList_SetItem
#define PyDict_GET_SIZE PyDict_Size
#define PyBytes_AS_STRING PyBytes_AsString

#undef Py_SETREF
#undef Py_XSETREF
#define Py_SETREF(at, o)           \
  do {                             \
    PyObject *before = (void *)at; \
    at = (o);                      \
    Py_DECREF(before);             \
  } while (0)
#define Py_XSETREF(at, o)          \
  do {                             \
    PyObject *before = (void *)at; \
    at = (o);                      \
    Py_XDECREF(before);            \
  } while (0)

/* A new object of a type, all zeros. */
static inline void *allocate(PyTypeObject *type) { return PyType_GenericAlloc(type, 0); }

/* Ends the deallocation of an object of a type that PyType_FromSpec has made, or of a subtype of it. */
static inline void deallocate(void *self) {
  PyTypeObject *type = Py_TYPE((PyObject *)self);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF((PyObject *)type);
}

#endif
