/* userop.c: reductions with a function of the program. */
#ifndef USEROP_H
#define USEROP_H

#include "shim.h"

/* set_functions(Op, functions of operations by handle, predefined datatypes by handle, buffer), when MPI is imported. */
PyObject *set_functions(PyObject *self, PyObject *args);

/* Whether this is an operation of the program. */
int is_own_op(PyObject *op);

typedef struct {
  int kind;                  /* GM_REDUCE, GM_ALLREDUCE, GM_REDUCE_SCATTER_BLOCK, GM_SCAN or GM_EXSCAN */
  int64_t comm, root, count; /* the items of an operand, or of a block of it */
  gm_comm_shape shape;
  PyObject *function, *datatype; /* see find_function */
} own_reduction;

/* Finds the function, and the datatype that it gets. Returns -1, without an exception, if the call is for Python: the operation has been
   freed, or the datatype is not a predefined one whose items follow each other. */
int find_function(own_reduction *c, PyObject *op, const spec *s);

/* Makes the call. s is NULL in place, r where there is no result; it releases both. */
PyObject *reduce_by_function(const own_reduction *c, spec *s, spec *r);

#endif
