/* Operations on windows that are not complete, for mpiexec --check. From its call until it is complete an operation has its buffers kept
   alive, and their pages watched (watch.c). Python's Known (gormapy/check/known.py) and the fast calls of hot_checked.c add and complete
   them. All of it has the GIL. */
#include "pending.h"

#include "watch.h"

#include <pythread.h>

enum { BUFFERS = 3 }; /* of an operation: origin, result, and what is compared */

typedef struct {
  int64_t number, target; /* the target's rank in COMM_WORLD */
  unsigned long thread;
  PyObject *holder;
  int told; /* its value is told when it is complete, by Known */
  int places;
  place place[BUFFERS];
} operation;

struct pending {
  int64_t win, ranks, *rank; /* the ranks in COMM_WORLD of the window's ranks */
  int near;                  /* no rank is behind libfabric, whose system calls can't use watched memory */
  Py_ssize_t count, room;
  operation *operations;
};

static pending **windows;
static Py_ssize_t window_count, window_room, last;

static pending *find(int64_t win) {
  if (last < window_count && windows[last]->win == win) return windows[last];
  for (Py_ssize_t i = 0; i < window_count; i++)
    if (windows[i]->win == win) return windows[last = i];
  return NULL;
}

pending *pending_on(int64_t win) {
  pending *p = find(win);
  return p && p->near ? p : NULL;
}

int64_t pending_rank(const pending *p, int64_t rank) { return rank >= 0 && rank < p->ranks ? p->rank[rank] : -1; }

static int no_memory(void) {
  PyErr_NoMemory();
  return -1;
}

static operation *add(pending *p) {
  if (p->count == p->room) {
    Py_ssize_t room = p->room ? 2 * p->room : 16;
    operation *more = realloc(p->operations, (size_t)room * sizeof *more);
    if (!more) return NULL;
    p->operations = more, p->room = room;
  }
  return &p->operations[p->count++];
}

int pending_add(pending *p, int64_t number, int64_t target, PyObject *holder, place buffer) {
  operation *o = add(p);
  if (!o) return no_memory();
  if (buffer.watched) watch_begin(buffer.address, buffer.bytes);
  *o = (operation){number, target, PyThread_get_thread_ident(), Py_NewRef(holder), 0, 1, {buffer}};
  return 0;
}

/* Which operations a completion is about. */
typedef struct {
  int64_t target, number; /* -1, 0: any */
  unsigned long thread;   /* 0: any */
} which;

static int is_meant(const operation *o, const which *w) {
  return (w->target < 0 || o->target == w->target) && (!w->number || o->number == w->number) &&
         (!w->thread || o->thread == w->thread);
}

/* Takes the operations that are meant out of the list; returns them, and in n how many there are. */
static operation *take(pending *p, const which *w, Py_ssize_t *n) {
  operation *taken = malloc((size_t)p->count * sizeof *taken + 1);
  Py_ssize_t left = 0;
  *n = 0;
  if (!taken) return NULL;
  for (Py_ssize_t i = 0; i < p->count; i++) {
    operation o = p->operations[i];
    if (is_meant(&o, w))
      taken[(*n)++] = o;
    else
      p->operations[left++] = o;
  }
  p->count = left;
  return taken;
}

/* Ends operations that have been taken. What their holders do when they are gone may change the list. */
static void drop(operation *taken, Py_ssize_t n) {
  for (Py_ssize_t i = 0; i < n; i++) Py_DECREF(taken[i].holder);
  free(taken);
}

int pending_flush(pending *p, int64_t target, place *unwatched, int most) {
  which w = {target, 0, PyThread_get_thread_ident()};
  int others = 0;
  for (Py_ssize_t i = 0; i < p->count; i++) {
    const operation *o = &p->operations[i];
    if (!is_meant(o, &w)) continue;
    if (o->told) return -1;
    for (int k = 0; k < o->places; k++) others += !o->place[k].watched;
  }
  Py_ssize_t n;
  operation *taken = others <= most ? take(p, &w, &n) : NULL;
  if (!taken) return -1;
  others = 0;
  for (Py_ssize_t i = 0; i < n; i++) {
    for (int k = 0; k < taken[i].places; k++) {
      place at = taken[i].place[k];
      if (at.watched)
        watch_end(at.address, at.bytes);
      else
        unwatched[others++] = at;
    }
  }
  drop(taken, n);
  return others;
}

void pending_watch(void) {
  for (Py_ssize_t w = 0; w < window_count; w++)
    for (Py_ssize_t i = 0; windows[w]->near && i < windows[w]->count; i++) {
      operation *o = &windows[w]->operations[i];
      for (int k = 0; k < o->places; k++) {
        place *at = &o->place[k];
        if (!at->watched && watch_is_own(at->address, at->bytes))
          at->watched = watch_begin(at->address, at->bytes) == 0;
      }
    }
}

/* pending_open(window, near, ranks in COMM_WORLD...) */
static PyObject *pending_open(ARGS) {
  int64_t head[2];
  if (n < 2) return PyErr_Format(PyExc_TypeError, "pending_open takes a window, and its ranks");
  if (integers("pending_open window near", args, 2, 2, head) < 0) return NULL;
  pending *p = find(head[0]) ? NULL : calloc(1, sizeof *p);
  if (!p) return PyErr_Format(PyExc_ValueError, "window %lld is there", (long long)head[0]);
  p->win = head[0], p->near = head[1] != 0, p->ranks = n - 2;
  p->rank = malloc((size_t)p->ranks * sizeof *p->rank + 1);
  if (window_count == window_room && p->rank) {
    pending **more = realloc(windows, (size_t)(2 * window_room + 8) * sizeof *more);
    if (more) windows = more, window_room = 2 * window_room + 8;
  }
  int ok = p->rank && window_count < window_room;
  if (!ok) PyErr_NoMemory();
  for (Py_ssize_t i = 2; ok && i < n; i++)
    ok = (p->rank[i - 2] = PyLong_AsLongLong(args[i])) != -1 || !PyErr_Occurred();
  if (!ok) {
    free(p->rank);
    free(p);
    return NULL;
  }
  windows[window_count++] = p;
  Py_RETURN_NONE;
}

/* pending_close(window): the window is freed. No operation is pending. */
static PyObject *pending_close(ARGS) {
  int64_t win;
  if (integers("pending_close window", args, n, 1, &win) < 0) return NULL;
  pending *p = find(win);
  if (!p) Py_RETURN_NONE;
  for (Py_ssize_t i = 0; i < window_count; i++)
    if (windows[i] == p) windows[i] = windows[window_count - 1];
  window_count--;
  drop(p->operations, p->count);
  free(p->rank);
  free(p);
  Py_RETURN_NONE;
}

/* pending_keep(window, number, target, told, holder, (address, bytes) of buffers...): adds an operation, and watches those of its buffers that
   have pages of their own. */
static PyObject *pending_keep(ARGS) {
  int64_t a[4], where[2 * BUFFERS];
  Py_ssize_t places = (n - 5) / 2;
  if (n < 5 || n % 2 == 0 || places > BUFFERS)
    return PyErr_Format(PyExc_TypeError, "pending_keep takes up to %d buffers", BUFFERS);
  if (integers("pending_keep window number target told", args, 4, 4, a) < 0) return NULL;
  if (integers("pending_keep", args + 5, 2 * places, 2 * places, where) < 0) return NULL;
  pending *p = find(a[0]);
  if (!p) return PyErr_Format(PyExc_ValueError, "window %lld is not known", (long long)a[0]);
  operation *o = add(p);
  if (!o) return PyErr_NoMemory();
  *o = (operation){a[1], a[2], PyThread_get_thread_ident(), Py_NewRef(args[4]), a[3] != 0, (int)places, {{0}}};
  for (Py_ssize_t i = 0; i < places; i++) {
    place at = {(uint64_t)where[2 * i], (uint64_t)where[2 * i + 1], 0};
    at.watched =
        p->near && !watch_is_stopped() && watch_is_own(at.address, at.bytes) && watch_begin(at.address, at.bytes) == 0;
    o->place[i] = at;
  }
  Py_RETURN_NONE;
}

/* pending_complete(window, target or -1, number or 0, thread or 0) -> ([(address, bytes) that are watched], [those that are not], [holders]) */
static PyObject *pending_complete(ARGS) {
  int64_t a[3];
  if (n != 4 || integers("pending_complete window target number", args, 3, 3, a) < 0)
    return n == 4 ? NULL : PyErr_Format(PyExc_TypeError, "pending_complete takes 4 arguments");
  unsigned long thread = PyLong_AsUnsignedLong(args[3]);
  if (PyErr_Occurred()) return NULL;
  pending *p = find(a[0]);
  PyObject *lists = Py_BuildValue("([][][])"), *place;
  if (!lists || !p) return lists;
  Py_ssize_t count;
  which w = {a[1], a[2], thread};
  operation *taken = take(p, &w, &count);
  if (!taken) PyErr_NoMemory();
  for (Py_ssize_t i = 0; taken && i < count; i++) {
    PyList_Append(PyTuple_GetItem(lists, 2), taken[i].holder);
    for (int k = 0; k < taken[i].places; k++) {
      place = Py_BuildValue("KK", (unsigned long long)taken[i].place[k].address,
                            (unsigned long long)taken[i].place[k].bytes);
      if (place) PyList_Append(PyTuple_GetItem(lists, !taken[i].place[k].watched), place);
      Py_XDECREF(place);
    }
  }
  if (taken) drop(taken, count);
  if (PyErr_Occurred()) Py_CLEAR(lists);
  return lists;
}

PyMethodDef pending_methods[] = {{"pending_open", (PyCFunction)(void *)pending_open, METH_FASTCALL, NULL},
                                 {"pending_close", (PyCFunction)(void *)pending_close, METH_FASTCALL, NULL},
                                 {"pending_keep", (PyCFunction)(void *)pending_keep, METH_FASTCALL, NULL},
                                 {"pending_complete", (PyCFunction)(void *)pending_complete, METH_FASTCALL, NULL},
                                 {0}};
