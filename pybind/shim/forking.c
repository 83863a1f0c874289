/* What a fork does about the sockets of gormapy.rdma, see gocore/rdmaapi/sockets/fork.go. Python's own hooks do not
   suffice: a signal may end one of them, and hooks of the program run between them and the fork. */
#include "raw.h"
#include "_cgo_export.h"

#include <pthread.h>
#include <stdlib.h>

/* The descriptors that a child of this thread has to close. Only the thread that forks is in the child. */
static __thread int32_t *sockets;
static __thread int64_t count;

static void before_fork(void) {
  count = 0;
  if (gm_forked) return;
  int64_t room = gm_fork_begins();
  sockets = malloc(room * sizeof *sockets);
  if (sockets) count = gm_fork_sockets(sockets, room);
}

static void in_parent(void) {
  if (gm_forked) return;
  free(sockets);
  gm_fork_ends();
}

/* sockets_before_fork() -> the descriptors of the sockets that the parent had, in a forked child. */
static PyObject *sockets_before_fork(PyObject *self, PyObject *noargs) {
  PyObject *list = PyList_New(gm_forked ? count : 0);
  for (Py_ssize_t i = 0; list && i < PyList_GET_SIZE(list); i++) {
    PyObject *descriptor = PyLong_FromLong(sockets[i]);
    if (!descriptor || PyList_SetItem(list, i, descriptor) < 0) Py_CLEAR(list);
  }
  return list;
}

/* Has forks wait for sockets that are being made, and the other way round. */
int ready_forking(void) { return pthread_atfork(before_fork, in_parent, NULL); }

PyMethodDef forking_methods[] = {{"sockets_before_fork", sockets_before_fork, METH_NOARGS, NULL}, {0}};
