#ifndef GM_NDARRAY_H
#define GM_NDARRAY_H
#include "shim.h"

/* Reads an array of NumPy as PyObject_GetBuffer would, but for the view's shape, which it leaves out. Returns 1, or 0 for
   anything else: also for arrays whose items are no numbers of this machine, or don't follow each other, and for
   read-only ones where flags ask for more. */
int ndarray_buffer(PyObject *o, Py_buffer *view, int flags);

#endif
