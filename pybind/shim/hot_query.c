/* The hot methods that say what an object knows. As in hot_win.c, the Python method of the same name gets what is
   unusual, and objects that are null.

   They are called with the GIL held. */
#include "object.h"

static PyObject *comm_get_rank(PyObject *self, PyObject *noargs) {
  const gm_comm_shape *shape = one_group((CommObject *)self);
  return shape ? PyLong_FromLong(shape->rank) : call_fallback(CALL_COMM_RANK, self, NULL, 0, NULL);
}

static PyObject *comm_get_size(PyObject *self, PyObject *noargs) {
  const gm_comm_shape *shape = one_group((CommObject *)self);
  return shape ? PyLong_FromLong(shape->size) : call_fallback(CALL_COMM_SIZE, self, NULL, 0, NULL);
}

static PyObject *datatype_get_size(PyObject *self, PyObject *noargs) {
  DatatypeObject *t = (DatatypeObject *)self;
  return t->h ? PyLong_FromLongLong(t->shape.size) : call_fallback(CALL_TYPE_SIZE, self, NULL, 0, NULL);
}

static PyObject *datatype_get_extent(PyObject *self, PyObject *noargs) {
  DatatypeObject *t = (DatatypeObject *)self;
  if (!t->h) return call_fallback(CALL_TYPE_EXTENT, self, NULL, 0, NULL);
  PyObject *both = PyTuple_New(2), *lb = PyLong_FromLongLong(t->shape.lb),
           *extent = PyLong_FromLongLong(t->shape.extent);
  if (!both || !lb || !extent) {
    Py_XDECREF(both), Py_XDECREF(lb), Py_XDECREF(extent);
    return NULL;
  }
  PyTuple_SET_ITEM(both, 0, lb), PyTuple_SET_ITEM(both, 1, extent);
  return both;
}

static PyObject *status_get_source(PyObject *self, PyObject *noargs) {
  return PyLong_FromLong(((StatusObject *)self)->st.source);
}

static PyObject *status_get_tag(PyObject *self, PyObject *noargs) {
  return PyLong_FromLong(((StatusObject *)self)->st.tag);
}

static PyObject *status_get_error(PyObject *self, PyObject *noargs) {
  return PyLong_FromLong(((StatusObject *)self)->st.error);
}

static PyObject *status_get_count(HOT) {
  static const char *const names[] = {"datatype", NULL};
  PyObject *a[1];
  int64_t size = 1, bytes = ((StatusObject *)self)->st.bytes; /* of BYTE */
  if (match_args(names, 0, args, n, kwnames, a) < 0) FALL_BACK(CALL_GET_COUNT);
  if (a[0]) {
    if (!PyObject_TypeCheck(a[0], DatatypeType) || !((DatatypeObject *)a[0])->h) FALL_BACK(CALL_GET_COUNT);
    size = ((DatatypeObject *)a[0])->shape.size;
  }
  if (size <= 0 || bytes < 0 || bytes % size) FALL_BACK(CALL_GET_COUNT);
  return PyLong_FromLongLong(bytes / size);
}

PyMethodDef comm_query_methods[] = {HOT_NOARGS("Get_rank", comm_get_rank), HOT_NOARGS("Get_size", comm_get_size), {0}};
PyMethodDef datatype_query_methods[] = {
    HOT_NOARGS("Get_size", datatype_get_size), HOT_NOARGS("Get_extent", datatype_get_extent), {0}};
PyMethodDef status_query_methods[] = {HOT_NOARGS("Get_source", status_get_source),
                                      HOT_NOARGS("Get_tag", status_get_tag),
                                      HOT_NOARGS("Get_error", status_get_error),
                                      HOT_METHOD("Get_count", status_get_count, "($self, datatype=...)"),
                                      {0}};
