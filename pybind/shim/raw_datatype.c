/* The raw calls of datatypes: those that programs make again and again. The others are pybind/core's. */
#include "raw.h"
#include "_cgo_export.h"

static DatatypeObject *datatype_arg(PyObject *o) {
  if (check_process() < 0) return NULL;
  if (PyObject_TypeCheck(o, &DatatypeType)) return (DatatypeObject *)o;
  PyErr_Format(PyExc_TypeError, "expecting a datatype, got %.100s", Py_TYPE(o)->tp_name);
  return NULL;
}

/* Puts a shape into the object; returns (lb, true_lb, true_extent). */
static PyObject *shaped(DatatypeObject *t, const gm_type_shape *s) {
  t->size = s->size, t->extent = s->extent, t->dense = (int)s->dense;
  return Py_BuildValue("LLL", s->lb, s->true_lb, s->true_extent);
}

/* type_make(object, kind, datatype, a, b, c): the object stands for the new datatype; returns what type_shape does. */
static PyObject *raw_type_make(ARGS) {
  int64_t a[5];
  gm_type_shape shape;
  DatatypeObject *t;
  if (n != 6) return PyErr_Format(PyExc_TypeError, "type_make takes 6 arguments");
  if (!(t = datatype_arg(args[0]))) return NULL;
  static const char *const names[] = {[GM_TYPE_DUP] = "type_make",
                                      [GM_TYPE_CONTIGUOUS] = "type_make kind datatype count",
                                      [GM_TYPE_VECTOR] = "type_make kind datatype count blocklength stride",
                                      [GM_TYPE_HVECTOR] = "type_make kind datatype count blocklength stride",
                                      [GM_TYPE_RESIZED] = "type_make kind datatype lb extent"};
  int64_t kind = PyLong_AsLongLong(args[1]);
  if (kind == -1 && PyErr_Occurred()) return NULL;
  if (kind < 0 || kind > GM_TYPE_RESIZED) return PyErr_Format(PyExc_ValueError, "kind %lld", (long long)kind);
  if (integers(names[kind], args + 1, 5, 5, a) < 0) return NULL;
  int64_t made = gm_make_type((int)kind, a[1], a[2], a[3], a[4], &shape);
  if (made < 0) return raise_code((int)-made);
  t->h = made;
  return shaped(t, &shape);
}

/* type_shape(object) -> (lb, true_lb, true_extent), and the object's size, extent and density */
static PyObject *raw_type_shape(ARGS) {
  gm_type_shape shape;
  DatatypeObject *t;
  if (n != 1) return PyErr_Format(PyExc_TypeError, "type_shape takes 1 argument");
  if (!(t = datatype_arg(args[0]))) return NULL;
  int code = gm_shape_of_type(t->h, &shape);
  return code ? raise_code(code) : shaped(t, &shape);
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

PyMethodDef raw_datatype_methods[] = {F(type_make), F(type_shape), F(type_commit), F(type_free), {0}};
