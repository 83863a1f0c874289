/* The raw calls of datatypes: those that programs make again and again. The others are pybind/core's. */
#include "raw.h"
#include "_cgo_export.h"

static DatatypeObject *datatype_arg(PyObject *o) {
  if (check_process() < 0) return NULL;
  if (PyObject_TypeCheck(o, DatatypeType)) return (DatatypeObject *)o;
  PyErr_Format(PyExc_TypeError, "expecting a datatype, got %.100s", type_name(o));
  return NULL;
}

/* Puts a shape into the object. */
static PyObject *shaped(DatatypeObject *t, const gm_type_shape *s) {
  t->shape = *s;
  datatype_shaped(t);
  Py_RETURN_NONE;
}

/* type_make(object, recipe): the object stands for the datatype that is made by a recipe, an array of integers. */
static PyObject *raw_type_make(ARGS) {
  gm_type_shape shape;
  DatatypeObject *t;
  Py_buffer recipe;
  if (n != 2) return PyErr_Format(PyExc_TypeError, "type_make takes 2 arguments");
  if (!(t = datatype_arg(args[0])) || PyObject_GetBuffer(args[1], &recipe, PyBUF_SIMPLE) < 0) return NULL;
  int64_t made = gm_make_type((int64_t)(intptr_t)recipe.buf, recipe.len / sizeof(int64_t), &shape);
  PyBuffer_Release(&recipe);
  if (made < 0) return raise_code((int)-made);
  t->h = made;
  return shaped(t, &shape);
}

/* type_shape(object) sets the object's size and bounds. */
static PyObject *raw_type_shape(ARGS) {
  gm_type_shape shape;
  DatatypeObject *t;
  if (n != 1) return PyErr_Format(PyExc_TypeError, "type_shape takes 1 argument");
  if (!(t = datatype_arg(args[0]))) return NULL;
  int code = gm_shape_of_type(t->h, &shape);
  return code ? raise_code(code) : shaped(t, &shape);
}

/* type_like(object, other): the object stands for the same datatype as the other one. */
static PyObject *raw_type_like(ARGS) {
  DatatypeObject *t, *other;
  if (n != 2) return PyErr_Format(PyExc_TypeError, "type_like takes 2 arguments");
  if (!(t = datatype_arg(args[0])) || !(other = datatype_arg(args[1]))) return NULL;
  datatype_copy(t, other);
  Py_RETURN_NONE;
}

static PyObject *raw_type_commit(ARGS) {
  int64_t a[1];
  if (integers("type_commit", args, n, 1, a) < 0) return NULL;
  return none_or(gm_commit_type(a[0]));
}

static PyObject *raw_type_free(ARGS) {
  int64_t a[1];
  if (integers("type_free", args, n, 1, a) < 0) return NULL;
  return none_or(gm_free_type(a[0]));
}

PyMethodDef raw_datatype_methods[] = {F(type_make), F(type_shape), F(type_like), F(type_commit), F(type_free), {0}};
