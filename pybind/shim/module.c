/* The module gormapy._fast: what is done when it is loaded, in a forked child, and at the end of the process. Its
   calls are in the tables of raw_NOUN.c, the hot methods in those of the base types (types.c). */
#include "raw.h" /* Python.h comes first */
#include "check.h"
#include "pending.h"
#include "watch.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "_cgo_export.h"

static void before_fork(void) { __atomic_fetch_add(&gm_forks, 1, __ATOMIC_SEQ_CST); }
static void in_child(void) { gm_forked = 1, gm_tracing = 0; }

/* faulthandler has taken back the signal stack that it gave to this thread, and that Go
   has used since; a signal of Go's scheduler would end the process without one. */
static void have_signal_stack(void) {
  static char stack[64 << 10];
  stack_t now, ours = {.ss_sp = stack, .ss_size = sizeof stack};
  if (sigaltstack(NULL, &now) == 0 && (now.ss_flags & SS_DISABLE)) sigaltstack(&ours, NULL);
}

/* Only here is it known how sys.exit ends the process: Python has forgotten the
   exception when it runs what was registered with it. */
static void at_exit(int status, void *unused) {
  if (gm_forked) return;
  have_signal_stack();
  gm_exiting(status);
}

/* Finalizes when Python has ended: after its threads, what was registered with atexit, and the __del__ of all
   objects, which may use MPI. Nothing of Python is there any more, so Ctrl-C ends the process. */
static int finalizes;

static void after_python(void) {
  if (gm_forked || !finalizes) return;
  gm_python_over = 1;
  have_signal_stack();
  if (TRACING) trace_open(TRACE_FINALIZE);
  while (gm_finalize(1) == GM_INTERRUPTED) continue;
  if (TRACING) trace_close(1);
}

/* finalize_after_python(): report whether that is possible. Python has room for 32 such functions. */
static PyObject *finalize_after_python(PyObject *self, PyObject *noargs) {
  static int registered;
  if (!registered) registered = Py_AtExit(after_python) == 0;
  finalizes = registered;
  return PyBool_FromLong(registered);
}

static PyMethodDef end_methods[] = {{"finalize_after_python", finalize_after_python, METH_NOARGS, NULL}, {0}};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_fast", "The calls of gormapy that wait or are hot.",
                                        -1};

/* The calls and numbers of the module; Python's kinds of calls are these. */
static PyMethodDef *const raw_tables[] = {
    end_methods,        raw_process_methods,  raw_request_methods, raw_request_list_methods, raw_message_methods,
    raw_object_methods, raw_datatype_methods, raw_group_methods,   raw_coll_methods,         raw_neighbor_methods,
    raw_comm_methods,   raw_win_methods,      raw_file_methods,    raw_memory_methods,       array_methods,
    function_methods,   check_methods,        watch_methods,       pending_methods,          checked_methods,
    check_site_methods, forking_methods};

static const struct {
  const char *name;
  int value;
} constants[] = {
    {"IN_PLACE", GM_IN_PLACE},
    {"SEND", GM_SEND},
    {"SSEND", GM_SSEND},
    {"RECV", GM_RECV},
    {"BSEND", GM_BSEND},
    {"RSEND", GM_RSEND},
    {"PUT", GM_PUT},
    {"GET", GM_GET},
    {"ACC", GM_ACC},
    {"GET_ACC", GM_GET_ACC},
    {"FETCH_OP", GM_FETCH_OP},
    {"BARRIER", GM_BARRIER},
    {"BCAST", GM_BCAST},
    {"GATHER", GM_GATHER},
    {"SCATTER", GM_SCATTER},
    {"ALLGATHER", GM_ALLGATHER},
    {"ALLTOALL", GM_ALLTOALL},
    {"REDUCE", GM_REDUCE},
    {"ALLREDUCE", GM_ALLREDUCE},
    {"REDUCE_SCATTER_BLOCK", GM_REDUCE_SCATTER_BLOCK},
    {"SCAN", GM_SCAN},
    {"EXSCAN", GM_EXSCAN},
    {"GATHERV", GM_GATHERV},
    {"SCATTERV", GM_SCATTERV},
    {"ALLGATHERV", GM_ALLGATHERV},
    {"ALLTOALLV", GM_ALLTOALLV},
    {"IBARRIER", GM_IBARRIER},
    {"ALLTOALLW", GM_ALLTOALLW},
    {"NEIGHBOR_ALLGATHER", GM_NEIGHBOR_ALLGATHER},
    {"NEIGHBOR_ALLTOALL", GM_NEIGHBOR_ALLTOALL},
    {"TYPE_DUP", GM_TYPE_DUP},
    {"TYPE_CONTIGUOUS", GM_TYPE_CONTIGUOUS},
    {"TYPE_VECTOR", GM_TYPE_VECTOR},
    {"TYPE_HVECTOR", GM_TYPE_HVECTOR},
    {"TYPE_RESIZED", GM_TYPE_RESIZED},
    {"TYPE_INDEXED", GM_TYPE_INDEXED},
    {"TYPE_HINDEXED", GM_TYPE_HINDEXED},
    {"TYPE_INDEXED_BLOCK", GM_TYPE_INDEXED_BLOCK},
    {"TYPE_HINDEXED_BLOCK", GM_TYPE_HINDEXED_BLOCK},
    {"TYPE_SUBARRAY", GM_TYPE_SUBARRAY},
    {"TYPE_STRUCT", GM_TYPE_STRUCT},
    {"NOTIFY_SLOTS", GM_NOTIFY_SLOTS},
};

PyMODINIT_FUNC PyInit__fast(void) {
  PyObject *m = PyModule_Create(&definition);
  if (!m || ready_types(m) < 0 || ready_trace(m) < 0) return NULL;
  pthread_atfork(before_fork, NULL, in_child);
  ready_forking();
  guard_arm(0);
  if (on_exit(at_exit, NULL) == 0) gm_tell_exit();
  for (size_t i = 0; i < sizeof raw_tables / sizeof *raw_tables; i++)
    if (PyModule_AddFunctions(m, raw_tables[i]) < 0) return NULL;
  for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
    if (PyModule_AddIntConstant(m, constants[i].name, constants[i].value) < 0) return NULL;
  PyObject *hot = PyTuple_New(CALL_COUNT);
  if (!hot) return NULL;
  for (int i = 0; i < CALL_COUNT; i++) PyTuple_SET_ITEM(hot, i, PyUnicode_FromString(hot_names[i]));
  if (PyModule_AddObject(m, "HOT", hot) < 0) return NULL;
  return m;
}
