/* Blocking reductions with a function of the program, in a communicator of one group. As in gormapy/MPI/userop.py, which has those
   that are not usual, the operands of the ranks come together in memory of this rank, by a collective that reduces nothing, and the
   function combines them there, in the order of the ranks. Both ways use the same collective of the core, so the ranks of a
   call may take either. */
#include "userop.h"
#include "object.h"
#include "_cgo_export.h"

/* MPI.Op, the functions of operations by handle, the predefined datatypes by handle, MPI.buffer. */
static PyObject *op_class, *functions, *datatypes, *buffer_class;

PyObject *set_functions(PyObject *self, PyObject *args) {
  PyObject *given[4], **kept[] = {&op_class, &functions, &datatypes, &buffer_class};
  if (!PyArg_ParseTuple(args, "O!O!O!O!", &PyType_Type, &given[0], &PyDict_Type, &given[1], &PyDict_Type, &given[2],
                        &PyType_Type, &given[3]))
    return NULL;
  for (int i = 0; i < 4; i++) {
    Py_INCREF(given[i]);
    Py_XSETREF(*kept[i], given[i]);
  }
  Py_RETURN_NONE;
}

/* What a dictionary has for a handle; NULL, without an exception, if that is nothing. */
static PyObject *of_handle(PyObject *dictionary, int64_t h) {
  PyObject *key = PyLong_FromLongLong(h), *found = key ? PyDict_GetItemWithError(dictionary, key) : NULL;
  Py_XDECREF(key);
  if (!found) PyErr_Clear();
  return found;
}

int is_own_op(PyObject *op) {
  return op_class && PyObject_TypeCheck(op, (PyTypeObject *)op_class) && ((HandleObject *)op)->h >= MOST_OPS;
}

int find_function(own_reduction *c, PyObject *op, const spec *s) {
  c->function = of_handle(functions, ((HandleObject *)op)->h);
  c->datatype = s->apart ? NULL : of_handle(datatypes, s->type);
  return c->function && c->datatype ? 0 : -1;
}

/* A view of memory that it keeps: the function may keep the view. Like those that Python makes of an address, it tells of no owner. */
static PyObject *view_of(char *at, int64_t bytes, PyObject *memory) {
  PyObject *owner = PyTuple_Pack(2, Py_None, memory);
  BufferObject *view = owner ? allocate((PyTypeObject *)buffer_class) : NULL;
  if (view) {
    view->addr = (int64_t)(intptr_t)at, view->bytes = bytes, view->owner = owner;
  } else {
    Py_XDECREF(owner);
  }
  return (PyObject *)view;
}

/* Has the function compute inout = in op inout. */
static int apply(PyObject *function, char *in, char *inout, int64_t bytes, PyObject *datatype, PyObject *memory) {
  PyObject *result = NULL, *a[] = {view_of(in, bytes, memory), view_of(inout, bytes, memory), datatype};
  if (a[0] && a[1]) result = call_vector(function, a, 3, NULL);
  Py_XDECREF(a[0]);
  Py_XDECREF(a[1]);
  Py_XDECREF(result);
  return result ? 0 : -1;
}

PyObject *reduce_by_function(const own_reduction *c, spec *s, spec *r) {
  const spec *operand = s ? s : r;
  int64_t n = c->count * operand->size, pending = 0;
  int kind = c->kind == GM_REDUCE ? GM_GATHER : c->kind == GM_REDUCE_SCATTER_BLOCK ? GM_ALLTOALL : GM_ALLGATHER;
  int last = c->kind == GM_SCAN ? c->shape.rank : c->kind == GM_EXSCAN ? c->shape.rank - 1 : c->shape.size - 1;
  int code, failed = 0, receives = kind != GM_GATHER || c->root == c->shape.rank;
  gm_status st;
  char *at, *inout;
  Py_ssize_t bytes = 1;
  PyObject *memory = NULL, *function = Py_NewRef(c->function); /* the program may free the operation meanwhile */
  if (receives && n && __builtin_mul_overflow(n, (int64_t)c->shape.size, &bytes))
    PyErr_NoMemory();
  else
    memory = PyBytes_FromStringAndSize(NULL, bytes); /* nobody but views of it has it */
  if (!memory) {
    if (s) PyBuffer_Release(&s->view);
    if (r) PyBuffer_Release(&r->view);
    Py_DECREF(function);
    return NULL;
  }
  at = PyBytes_AS_STRING(memory), inout = at + last * n;
  BLOCKING(code, pending, &st,
           gm_coll_blocking(kind, c->comm, (int64_t)(intptr_t)operand->view.buf, c->count, operand->type,
                            (int64_t)(intptr_t)at, n, object_type, 0, c->root, &pending));
  if (code == 0 && receives && n && last >= 0) {
    for (int rank = last - 1; rank >= 0 && !failed; rank--)
      failed = apply(function, at + rank * n, inout, n, c->datatype, memory) < 0;
    if (!failed && program_copy(r->view.buf, inout, n)) code = gm_faulted(guard_address());
  }
  if (s) release_spec(code, pending, s);
  if (r) release_spec(code, pending, r);
  if (code)
    keep_until_over(pending, memory);
  else
    Py_DECREF(memory);
  Py_DECREF(function);
  return failed ? NULL : none_or(code);
}
