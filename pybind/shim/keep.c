/* Memory of operations that nobody waits for any more: it stays as long as the operation
   may use it. So does that of a request that was freed or dropped, of a call that Ctrl-C
   has ended, and of a receive that failed while a network may still write to it. Go knows
   when an operation is over; it is asked now and then, when requests are made and completed and objects are pickled,
   and what it then says is over is released. All of it is under the GIL. */
#include "shim.h"
#include "_cgo_export.h"

static struct kept {
  int64_t h;
  PyObject *memory;
} *kept;
static Py_ssize_t count, room, next;

/* So many are asked about in one call: there may be thousands. */
#define AT_ONCE 8

/* Whatever Python has to say meanwhile stays as it is. */
static void release(PyObject *memory) {
  PyObject *type, *value, *traceback;
  if (!memory) return;
  PyErr_Fetch(&type, &value, &traceback);
  Py_DECREF(memory);
  PyErr_Restore(type, value, traceback);
}

void keep_sweep(void) {
  if (gm_forked) return;
  for (Py_ssize_t todo = count < AT_ONCE ? count : AT_ONCE; todo && count; todo--) {
    if (next >= count) next = 0;
    if (!gm_request_over(kept[next].h)) {
      next++;
      continue;
    }
    PyObject *memory = kept[next].memory;
    kept[next] = kept[--count];
    release(memory); /* may call Python, and come here again */
  }
}

void keep_until_over(int64_t h, PyObject *memory) {
  if (!h && !memory) return;
  if (gm_forked) return; /* the parent's operation */
  if (gm_request_over(h)) {
    release(memory);
  } else {
    if (count == room) {
      Py_ssize_t more = room ? 2 * room : 16;
      struct kept *larger = PyMem_Realloc(kept, more * sizeof *kept);
      if (!larger) return; /* then it stays for good */
      kept = larger, room = more;
    }
    kept[count++] = (struct kept){h, memory};
  }
  if (count) keep_sweep();
}

void keep_view(int64_t h, Py_buffer *view) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  HolderObject *holder = allocate(HolderType);
  PyErr_Restore(type, value, traceback);
  if (!holder) return; /* then it stays for good */
  holder->view = *view;
  keep_until_over(h, (PyObject *)holder);
}

Py_ssize_t kept_count(void) { return count; }
