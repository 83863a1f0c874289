/* The hot methods that say what an object knows. As in hot_win.c, the Python method of the same name gets what is
   unusual, and objects that are null.

   They are called with the GIL held. */
#include "object.h"

#include <time.h>

static PyObject *two_integers(int64_t first, int64_t second) {
  PyObject *both = PyTuple_New(2), *a = PyLong_FromLongLong(first), *b = PyLong_FromLongLong(second);
  if (!both || !a || !b) {
    Py_XDECREF(both), Py_XDECREF(a), Py_XDECREF(b);
    return NULL;
  }
  PyTuple_SET_ITEM(both, 0, a), PyTuple_SET_ITEM(both, 1, b);
  return both;
}

static PyObject *comm_get_rank(PyObject *self, PyObject *noargs) {
  const gm_comm_shape *shape = one_group((CommObject *)self);
  return shape ? PyLong_FromLong(shape->rank) : call_fallback(CALL_COMM_RANK, self, NULL, 0, NULL);
}

static PyObject *comm_get_size(PyObject *self, PyObject *noargs) {
  const gm_comm_shape *shape = one_group((CommObject *)self);
  return shape ? PyLong_FromLong(shape->size) : call_fallback(CALL_COMM_SIZE, self, NULL, 0, NULL);
}

/* A program asks for the same few shifts again and again. */
static PyObject *cart_shift(HOT) {
  static const char *const names[] = {"direction", "disp", NULL};
  PyObject *a[2];
  int64_t direction, disp, h = comm_handle(self);
  if (!h || match_args(names, 2, args, n, kwnames, a) < 0 || !PyLong_CheckExact(a[0]) || !PyLong_CheckExact(a[1]) ||
      parse_small_int(a[0], &direction) < 0 || parse_small_int(a[1], &disp) < 0)
    FALL_BACK(CALL_SHIFT);
  __typeof__(((CommObject *)self)->shifts[0]) *kept =
      &((CommObject *)self)->shifts[(2 * direction + (disp < 0)) & (KEPT_SHIFTS - 1)];
  if (kept->h == h && kept->direction == direction && kept->disp == disp)
    return two_integers(kept->source, kept->destination);
  PyObject *found = call_fallback(CALL_SHIFT, self, args, n, kwnames);
  int64_t source, destination;
  if (found && PyTuple_CheckExact(found) && PyTuple_GET_SIZE(found) == 2 &&
      parse_small_int(PyTuple_GET_ITEM(found, 0), &source) == 0 &&
      parse_small_int(PyTuple_GET_ITEM(found, 1), &destination) == 0) {
    kept->h = h, kept->direction = (int32_t)direction, kept->disp = (int32_t)disp;
    kept->source = (int32_t)source, kept->destination = (int32_t)destination;
  }
  return found;
}

static PyObject *datatype_get_size(PyObject *self, PyObject *noargs) {
  DatatypeObject *t = (DatatypeObject *)self;
  return t->h ? PyLong_FromLongLong(t->shape.size) : call_fallback(CALL_TYPE_SIZE, self, NULL, 0, NULL);
}

static PyObject *datatype_get_extent(PyObject *self, PyObject *noargs) {
  DatatypeObject *t = (DatatypeObject *)self;
  if (!t->h) return call_fallback(CALL_TYPE_EXTENT, self, NULL, 0, NULL);
  return two_integers(t->shape.lb, t->shape.extent);
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
/* The clock of time.monotonic(). */
static PyObject *wtime(PyObject *self, PyObject *noargs) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return PyFloat_FromDouble((double)now.tv_sec + (double)now.tv_nsec * 1e-9);
}

/* Functions of gormapy.MPI. */
PyMethodDef function_methods[] = {{"Wtime", wtime, METH_NOARGS, "Wtime($module)" SIGNATURE_END}, {0}};
PyMethodDef cartcomm_methods[] = {HOT_METHOD("Shift", cart_shift, "($self, direction, disp)"), {0}};
PyMethodDef datatype_query_methods[] = {
    HOT_NOARGS("Get_size", datatype_get_size), HOT_NOARGS("Get_extent", datatype_get_extent), {0}};
PyMethodDef status_query_methods[] = {HOT_NOARGS("Get_source", status_get_source),
                                      HOT_NOARGS("Get_tag", status_get_tag),
                                      HOT_NOARGS("Get_error", status_get_error),
                                      HOT_METHOD("Get_count", status_get_count, "($self, datatype=...)"),
                                      {0}};
