/* The hot methods of groups, and those that make the group of a communicator. As in hot_win.c, the usual arguments
   are read here, and the Python method of the same name gets the others; it also makes a call that has failed again,
   and says why.

   They are called with the GIL held. */
#include "raw.h"
#include "_cgo_export.h"

PyObject *group_class;

enum { EMPTY = 1, MOST_RANKS = 64 };

/* The object of a group that a call has made. */
static PyObject *made_group(int64_t h) {
  HandleObject *g = allocate((PyTypeObject *)group_class);
  if (g) g->h = h;
  return (PyObject *)g;
}

/* The handle of a group, which is not null; 0 for anything else. */
static int64_t group_handle(PyObject *o) {
  return !gm_forked && PyObject_TypeCheck(o, GroupType) ? ((HandleObject *)o)->h : 0;
}

/* Reads a list or tuple of some integers of Python. Returns how many there are, or -1. */
static Py_ssize_t read_ranks(PyObject *o, int32_t *ranks) {
  if (!PyList_CheckExact(o) && !PyTuple_CheckExact(o)) return -1;
  Py_ssize_t count = PySequence_Fast_GET_SIZE(o);
  if (count > MOST_RANKS) return -1;
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *item = PySequence_Fast_GET_ITEM(o, i);
    int64_t v;
    if (!PyLong_Check(item) || parse_int(item, &v) < 0 || v != (int32_t)v) return -1;
    ranks[i] = (int32_t)v;
  }
  return count;
}

static PyObject *group_get_size(PyObject *self, PyObject *noargs) {
  int64_t h = group_handle(self), size = h ? gm_group_size(h) : -1;
  return size < 0 ? call_fallback(CALL_GROUP_SIZE, self, NULL, 0, NULL) : PyLong_FromLongLong(size);
}

static PyObject *group_get_rank(PyObject *self, PyObject *noargs) {
  int64_t h = group_handle(self), rank;
  if (!h || gm_group_rank(h, &rank)) return call_fallback(CALL_GROUP_RANK, self, NULL, 0, NULL);
  return PyLong_FromLongLong(rank);
}

static PyObject *group_incl(HOT) {
  static const char *const names[] = {"ranks", NULL};
  PyObject *a[1];
  int32_t ranks[MOST_RANKS];
  int64_t h = group_handle(self), made = -1;
  Py_ssize_t count;
  if (h && (PyObject *)Py_TYPE(self) == group_class && match_args(names, 1, args, n, kwnames, a) == 0 &&
      (count = read_ranks(a[0], ranks)) >= 0)
    made = gm_group_incl(h, (int64_t)(intptr_t)ranks, count);
  if (made < 0) FALL_BACK(CALL_GROUP_INCL);
  return made_group(made);
}

static PyObject *group_translate_ranks(HOT) {
  static const char *const names[] = {"ranks", "group", NULL};
  PyObject *a[2];
  int32_t ranks[MOST_RANKS], found[MOST_RANKS];
  int64_t h = group_handle(self), other;
  Py_ssize_t count;
  if (!h || match_args(names, 2, args, n, kwnames, a) < 0 || !(other = group_handle(a[1])) ||
      (count = read_ranks(a[0], ranks)) < 0 ||
      gm_group_translate(h, (int64_t)(intptr_t)ranks, count, other, (int64_t)(intptr_t)found))
    FALL_BACK(CALL_TRANSLATE_RANKS);
  PyObject *list = PyList_New(count);
  for (Py_ssize_t i = 0; list && i < count; i++) {
    PyObject *rank = PyLong_FromLong(found[i]);
    if (!rank || PyList_SetItem(list, i, rank) < 0) Py_CLEAR(list);
  }
  return list;
}

static PyObject *group_free(PyObject *self, PyObject *noargs) {
  int64_t h = group_handle(self);
  if (h <= EMPTY || gm_group_free(h)) return call_fallback(CALL_GROUP_FREE, self, NULL, 0, NULL);
  ((HandleObject *)self)->h = 0;
  Py_RETURN_NONE;
}

static PyObject *comm_get_group(PyObject *self, PyObject *noargs) {
  int64_t h = comm_handle(self), made = h && group_class ? gm_comm_group(h) : -1;
  return made < 0 ? call_fallback(CALL_COMM_GROUP, self, NULL, 0, NULL) : made_group(made);
}

PyMethodDef group_methods[] = {HOT_NOARGS("Get_size", group_get_size),
                               HOT_NOARGS("Get_rank", group_get_rank),
                               HOT_METHOD("Incl", group_incl, "($self, ranks)"),
                               HOT_METHOD("Translate_ranks", group_translate_ranks, "($self, ranks=None, group=None)"),
                               HOT_NOARGS("Free", group_free),
                               {0}};
PyMethodDef comm_group_methods[] = {HOT_NOARGS("Get_group", comm_get_group), {0}};
