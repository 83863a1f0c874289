/* Calls for code that a compiler makes while Python runs (gormapy/numba/functions.py). They take and return plain C
   values, and their addresses go to Python by compiled_addresses.

   Unlike everything else here they are called with the GIL or without, and by threads that Python does not know of. A
   call that may wait gives the GIL up if it has it. Each returns 0 or the class of an error, and GM_STILL_USED with it
   while others may still read or write the memory that it was given.

   Signals are looked at by the main thread only. Another thread must not ask for the GIL while it waits: the main
   thread may have it and wait for that very thread, as in a parallel loop. An exception of a signal's handler, such as
   KeyboardInterrupt, ends the call with the class ERR_PENDING. Compiled code can't raise it: it is kept until the
   interpreter runs again in the main thread, and until then every call of this thread fails in the same way, so that
   code that looks at no status does not wait once more. */
#include "shim.h"
#include "_cgo_export.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Beside the class of an error: the memory must stay. */
enum { GM_STILL_USED = 256 };

/* The code of the last error of this thread, for its sentence. */
static __thread int last_error;

/* What a signal's handler has raised in the main thread, and whether the interpreter has been asked to raise it. */
static PyObject *raised_type, *raised_value, *raised_traceback;
static volatile int raised, announced;

static int is_main_thread(void) { return syscall(SYS_gettid) == getpid(); } /* glibc has gettid from 2.30 on */

static int failed(int code) {
  last_error = code;
  return error_class(code);
}

/* The interpreter calls it in the main thread. */
static int raise_kept(void *unused) {
  if (!raised) return 0;
  raised = announced = 0;
  PyErr_Restore(raised_type, raised_value, raised_traceback);
  raised_type = raised_value = raised_traceback = NULL;
  return -1;
}

/* Asks the interpreter to raise what is kept; again with the next call if its queue is full. */
static void announce(void) { announced = Py_AddPendingCall(raise_kept, NULL) == 0; }

/* Runs the handlers of all signals that have arrived; RAISED if one has raised an exception, which is kept. Python stops
   at the first that raises: the others would be called later, and the kept exception would end them. */
static int run_handlers(void) {
  if (gm_python_over || !is_main_thread()) return 0;
  int code = 0;
  PyGILState_STATE state = PyGILState_Ensure();
  while (PyErr_CheckSignals() < 0) {
    if (code) {
      PyErr_Clear();
      continue;
    }
    PyErr_Fetch(&raised_type, &raised_value, &raised_traceback);
    code = RAISED;
  }
  if (code) {
    raised = 1;
    announce();
  }
  PyGILState_Release(state);
  return code;
}

/* The state of the thread that has the GIL, if this thread has it. No function of the stable ABI tells: Python has the
   first of these from 3.13 on, and had the other before. */
PyAPI_FUNC(PyThreadState *) PyThreadState_GetUnchecked(void) __attribute__((weak));
PyAPI_FUNC(PyThreadState *) _PyThreadState_UncheckedGet(void) __attribute__((weak));

static PyThreadState *current_state(void) {
  return PyThreadState_GetUnchecked ? PyThreadState_GetUnchecked() : _PyThreadState_UncheckedGet();
}

/* Gives the GIL up if this thread has it. PyGILState_Check does not tell once there was a subinterpreter. */
static PyThreadState *give_up(void) {
  PyThreadState *own = PyGILState_GetThisThreadState();
  return own && own == current_state() ? PyEval_SaveThread() : NULL;
}

static void take_back(PyThreadState *state) {
  if (gm_python_over) stay_forever();
  if (state) PyEval_RestoreThread(state);
}

/* What keeps a call from being made at all. */
static int refused(void) {
  if (gm_forked) return GM_ERR_OTHER;
  if (!raised || !is_main_thread()) return 0;
  if (!announced) announce();
  return GM_ERR_PENDING;
}

#define REFUSE                           \
  do {                                   \
    int why = refused();                 \
    if (why) return last_error = 0, why; \
  } while (0)

/* Runs CALL, an int expression, and again after the handlers of signals whenever it comes back interrupted. */
#define AGAIN(code, CALL)                        \
  do {                                           \
    PyThreadState *state = give_up();            \
    do {                                         \
      code = (CALL);                             \
      if (code != GM_INTERRUPTED) break;         \
    } while ((code = run_handlers()) != RAISED); \
    take_back(state);                            \
  } while (0)

/* The class of a code that a call has ended with, and whether its memory is used under a request (0: none). */
static int ended(int code, int64_t pending) {
  if (code == 0) return 0;
  int class = code == RAISED ? GM_ERR_PENDING : failed(code);
  return gm_request_over(pending) ? class : class | GM_STILL_USED;
}

/* Waits for what was interrupted. */
static int go_on(int64_t pending, gm_status *st) {
  int code;
  do {
    code = run_handlers();
    if (code != RAISED) code = gm_wait(pending, st);
  } while (code == GM_INTERRUPTED);
  if (code == RAISED) gm_abandon(pending, 1);
  return code;
}

/* Runs CALL, an int expression that sets pending when it comes back interrupted, and resumes it; returns the class. */
#define RETURN_BLOCKING(CALL)                               \
  do {                                                      \
    gm_status st;                                           \
    int64_t pending = 0;                                    \
    REFUSE;                                                 \
    PyThreadState *state = give_up();                       \
    int code = (CALL);                                      \
    if (code == GM_INTERRUPTED) code = go_on(pending, &st); \
    take_back(state);                                       \
    return ended(code, pending);                            \
  } while (0)

/* What Python refuses without a call; the error has no sentence. */
static int compiled_refused(int64_t class) { return last_error = 0, (int)class; }

/* The process
   ----------- */

static int compiled_initialized(void) { return !gm_forked && gm_initialized(); }
static int compiled_last_error(void) { return last_error; }

static double compiled_wtime(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

/* Both return 0 for what is no communicator. */
static int64_t number(int n) {
  if (n >= 0) return n;
  failed(-n);
  return 0;
}

static int64_t compiled_rank(int64_t comm) { return gm_forked ? 0 : number(gm_comm_rank(comm)); }
static int64_t compiled_size(int64_t comm) { return gm_forked ? 0 : number(gm_comm_size(comm)); }

/* Messages
   -------- */

static int compiled_send(int64_t comm, int64_t addr, int64_t count, int64_t type, int64_t dest, int64_t tag) {
  RETURN_BLOCKING(gm_blocking(GM_SEND, comm, addr, count, type, dest, tag, &st, &pending));
}

static int compiled_recv(int64_t comm, int64_t addr, int64_t count, int64_t type, int64_t source, int64_t tag) {
  RETURN_BLOCKING(gm_blocking(GM_RECV, comm, addr, count, type, source, tag, &st, &pending));
}

static int compiled_sendrecv(int64_t comm, int64_t addr, int64_t count, int64_t type, int64_t dest, int64_t tag,
                             int64_t raddr, int64_t rcount, int64_t rtype, int64_t source, int64_t rtag) {
  int64_t s[] = {addr, count, type, dest, tag}, r[] = {raddr, rcount, rtype, source, rtag};
  RETURN_BLOCKING(gm_sendrecv(comm, s, r, &st, &pending));
}

static int start(int kind, int64_t comm, int64_t addr, int64_t count, int64_t type, int64_t peer, int64_t tag,
                 int64_t request) {
  int64_t *req = (int64_t *)(intptr_t)request;
  *req = 0;
  REFUSE;
  PyThreadState *state = give_up(); /* the data of a message that is here already is copied at once */
  int code = gm_p2p(kind, comm, addr, count, type, peer, tag, req);
  take_back(state);
  return code ? failed(code) : 0;
}

static int compiled_isend(int64_t comm, int64_t addr, int64_t count, int64_t type, int64_t dest, int64_t tag,
                          int64_t request) {
  return start(GM_SEND, comm, addr, count, type, dest, tag, request);
}

static int compiled_irecv(int64_t comm, int64_t addr, int64_t count, int64_t type, int64_t source, int64_t tag,
                          int64_t request) {
  return start(GM_RECV, comm, addr, count, type, source, tag, request);
}

/* Requests: count handles in memory of the program, 0 for none. One that has ended becomes 0.
   -------- */

static int64_t *handles(int64_t requests) { return (int64_t *)(intptr_t)requests; }

/* A request may be let go while it is under way: after Ctrl-C, an error, or because a program does not wait. The array
   that is communicated is then kept here until the request is over. For compiled code (python 0) it is an address, for
   Python a number: who calls knows how to release what collect returns.

   A request that has failed has no handle any more, and a network may still write to its array: request 0 is over when
   no network does. */
static struct unfinished {
  struct {
    int64_t request, array;
  } *list;
  int64_t count, room, next;
} unfinished[2];
static pthread_mutex_t unfinished_mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile int some_failed;

/* Reports whether the array is kept: not, if the request is over. The program may have copied its handle, and wait for
   it. */
static int compiled_keep(int64_t python, int64_t request, int64_t array) {
  struct unfinished *u = &unfinished[python != 0];
  if (gm_forked || (request == 0 && !some_failed) || gm_request_complete(request)) return 0;
  pthread_mutex_lock(&unfinished_mutex);
  if (u->count == u->room) {
    int64_t room = u->room ? 2 * u->room : 16;
    void *larger = realloc(u->list, room * sizeof *u->list);
    if (larger) u->list = larger, u->room = room;
  }
  if (u->count < u->room) { /* else it stays for good */
    u->list[u->count].request = request;
    u->list[u->count++].array = array;
  }
  pthread_mutex_unlock(&unfinished_mutex);
  return 1;
}

/* Looks at a few, and returns an array whose request is over now, 0 for none. */
static int64_t compiled_collect(int64_t python) {
  struct unfinished *u = &unfinished[python != 0];
  int64_t array = 0;
  if (gm_forked || u->count == 0) return 0;
  pthread_mutex_lock(&unfinished_mutex);
  for (int64_t todo = u->count < 8 ? u->count : 8; todo > 0 && !array; todo--) {
    if (u->next >= u->count) u->next = 0;
    if (gm_request_complete(u->list[u->next].request)) {
      array = u->list[u->next].array;
      u->list[u->next] = u->list[--u->count];
    } else {
      u->next++;
    }
  }
  pthread_mutex_unlock(&unfinished_mutex);
  return array;
}

static int finished(int64_t *req, int code) {
  if (code == RAISED) return GM_ERR_PENDING;
  if (code) some_failed = 1;
  if (!may_complete(code)) *req = 0;
  return code ? failed(code) : 0;
}

static int compiled_wait(int64_t requests) {
  int64_t *req = handles(requests);
  gm_status st;
  int code;
  REFUSE;
  AGAIN(code, gm_wait(*req, &st));
  return finished(req, code);
}

static int compiled_waitall(int64_t n, int64_t requests) {
  int64_t *reqs = handles(requests);
  int code, first = 0;
  REFUSE;
  AGAIN(code, gm_await(reqs, (int)n));
  if (code == RAISED) return GM_ERR_PENDING;
  for (int64_t i = 0; i < n; i++) {
    gm_status st;
    AGAIN(code, gm_wait(reqs[i], &st));
    int class = finished(&reqs[i], code);
    if (code == RAISED) return class;
    if (class && !first) first = class;
  }
  return first;
}

static int compiled_waitany(int64_t n, int64_t requests, int64_t index) {
  int64_t *reqs = handles(requests);
  gm_status st;
  int code, i = -1;
  REFUSE;
  AGAIN(code, gm_waitany(reqs, (int)n, &st, &i));
  if (code == RAISED) return GM_ERR_PENDING;
  *handles(index) = i;
  if (i >= 0) return finished(&reqs[i], code);
  return code ? failed(code) : 0;
}

static int test_one(int64_t *req, int *done) {
  gm_status st;
  PyThreadState *state = give_up();
  int code = gm_test(*req, &st, done);
  if (code == 0 && !*done && run_handlers() == RAISED) code = RAISED; /* it may be asked for ever */
  take_back(state);
  return code == 0 && !*done ? 0 : finished(req, code);
}

static int compiled_test(int64_t requests, int64_t flag) {
  int done = 0;
  REFUSE;
  int class = test_one(handles(requests), &done);
  *handles(flag) = done;
  return class;
}

/* All or none, as long as none fails. */
static int compiled_testall(int64_t n, int64_t requests, int64_t flag) {
  int64_t *reqs = handles(requests);
  int all = 1, first = 0;
  gm_status st;
  REFUSE;
  for (int64_t i = 0; i < n && all; i++) {
    int done = 0, code = gm_request_status(reqs[i], &st, &done);
    if (code == 0 && !done) { /* asks for progress, and looks at signals */
      PyThreadState *state = give_up();
      gm_progress();
      int signalled = run_handlers();
      take_back(state);
      if (signalled == RAISED) return GM_ERR_PENDING;
      code = gm_request_status(reqs[i], &st, &done);
    }
    if (code) return finished(&reqs[i], code);
    all = done;
  }
  for (int64_t i = 0; i < n && all; i++) {
    int done = 0, class = test_one(&reqs[i], &done);
    if (class && !first) first = class;
  }
  *handles(flag) = all;
  return first;
}

/* index: -1 if none is active; then flag is set. */
static int compiled_testany(int64_t n, int64_t requests, int64_t index, int64_t flag) {
  int64_t *reqs = handles(requests);
  int active = 0;
  REFUSE;
  *handles(index) = -1;
  for (int64_t i = 0; i < n; i++) {
    if (reqs[i] == 0) continue;
    int done = 0, class = test_one(&reqs[i], &done);
    active = 1;
    if (class || done) {
      *handles(index) = i;
      *handles(flag) = done;
      return class;
    }
  }
  *handles(flag) = !active;
  return 0;
}

/* Collectives
   ----------- */

static int compiled_barrier(int64_t comm) { RETURN_BLOCKING(gm_barrier(comm, &pending)); }

static int compiled_bcast(int64_t comm, int64_t addr, int64_t count, int64_t type, int64_t root) {
  RETURN_BLOCKING(gm_coll_blocking(GM_BCAST, comm, 0, 0, 0, addr, count, type, 0, root, &pending));
}

#define DEFINE_ROOTED(name, kind)                                                                                 \
  static int compiled_##name(int64_t comm, int64_t saddr, int64_t scount, int64_t stype, int64_t raddr,           \
                             int64_t rcount, int64_t rtype, int64_t root) {                                       \
    RETURN_BLOCKING(gm_coll_blocking(kind, comm, saddr, scount, stype, raddr, rcount, rtype, 0, root, &pending)); \
  }
DEFINE_ROOTED(scatter, GM_SCATTER)
DEFINE_ROOTED(gather, GM_GATHER)
DEFINE_ROOTED(allgather, GM_ALLGATHER)

static int compiled_reduce(int64_t comm, int64_t saddr, int64_t raddr, int64_t count, int64_t type, int64_t op,
                           int64_t root) {
  RETURN_BLOCKING(gm_coll_blocking(GM_REDUCE, comm, saddr, count, type, raddr, count, type, op, root, &pending));
}

static int compiled_allreduce(int64_t comm, int64_t saddr, int64_t raddr, int64_t count, int64_t type, int64_t op) {
  RETURN_BLOCKING(gm_coll_blocking(GM_ALLREDUCE, comm, saddr, count, type, raddr, count, type, op, 0, &pending));
}

/* One-sided operations. Each is complete at the origin when it returns: compiled code frees an array after its last
   use, which is the call.
   -------------------- */

/* The descriptor of the window that this thread has used last: most use one. NULL if the handle names no window. */
static gm_desc *descriptor(int64_t win) {
  static __thread gm_desc *last;
  if (win <= 0) return NULL;
  if (!last || last->handle != win) last = gm_win_desc(win);
  return last && last->handle == win ? last : NULL;
}

/* Makes the general call, and completes it. */
static int general(const gm_desc *d, gm_access *a, int64_t bytes) {
  int code;
  int64_t pending = 0;
  AGAIN(code, gm_rma(a));
  if (code || a->rank == GM_PROC_NULL || (d && returns_origin(d, a->kind, bytes, a->rank))) return ended(code, 0);
  PyThreadState *state = give_up();
  gm_status st;
  code = gm_complete_at(a->win, a->rank, &pending);
  if (code == GM_INTERRUPTED) code = go_on(pending, &st);
  take_back(state);
  /* nobody knows what the operation still does */
  return code ? ended(code, pending) | GM_STILL_USED : 0;
}

static int done_or_failed(int done) { return done == GM_DONE ? 0 : failed(done); }

/* Compiled code may look at a window for ever: so a call that does not wait runs the handlers of signals now and then,
   and lets other threads run. Another class than 0 is what the call is to return. */
static int look_around(void) {
  enum { CALLS = 1 << 10, MILLISECONDS = 50 };
  static __thread unsigned calls;
  static __thread double next;
  if (++calls % CALLS || compiled_wtime() < next || !is_main_thread()) return 0;
  next = compiled_wtime() + 1e-3 * MILLISECONDS;
  PyThreadState *state = give_up();
  int code = run_handlers();
  take_back(state);
  return code == RAISED ? GM_ERR_PENDING : 0;
}

#define LOOK_AROUND                      \
  do {                                   \
    int why = look_around();             \
    if (why) return last_error = 0, why; \
  } while (0)

static int transfer(int put, int64_t win, int64_t addr, int64_t count, int64_t type, int64_t size, int64_t rank,
                    int64_t disp) {
  REFUSE;
  LOOK_AROUND;
  gm_desc *d = descriptor(win);
  int64_t bytes = count * size;
  if (d) {
    PyThreadState *state = bytes > LONG_COPY ? give_up() : NULL;
    int done = transfer_at_once(d, put, (void *)(intptr_t)addr, bytes, rank, disp);
    take_back(state);
    if (done) return done_or_failed(done);
  }
  gm_access a = {.kind = put ? GM_PUT : GM_GET,
                 .win = win,
                 .origin = {addr, count, type},
                 .result = {0, 0, type},
                 .rank = rank,
                 .target = {disp, count, type}};
  return general(d, &a, bytes);
}

static int compiled_put(int64_t win, int64_t addr, int64_t count, int64_t type, int64_t size, int64_t rank,
                        int64_t disp) {
  return transfer(1, win, addr, count, type, size, rank, disp);
}

static int compiled_get(int64_t win, int64_t addr, int64_t count, int64_t type, int64_t size, int64_t rank,
                        int64_t disp) {
  return transfer(0, win, addr, count, type, size, rank, disp);
}

/* result: 0 for an accumulate. */
static int update(int64_t win, int64_t origin, int64_t result, int64_t count, int64_t type, int64_t size, int64_t rank,
                  int64_t disp, int64_t op) {
  REFUSE;
  LOOK_AROUND;
  gm_desc *d = descriptor(win);
  int64_t bytes = count * size;
  if (d && bytes <= LONG_COPY) {
    int done = update_at_once(d, op, type, (void *)(intptr_t)origin, (void *)(intptr_t)result, count, size, rank, disp);
    if (done) return done_or_failed(done);
  }
  gm_access a = {.kind = result ? GM_FETCH_OP : GM_ACC,
                 .win = win,
                 .origin = {origin, count, type},
                 .result = {result, result ? count : 0, type},
                 .rank = rank,
                 .target = {disp, count, type},
                 .op = op};
  return general(d, &a, bytes);
}

static int compiled_accumulate(int64_t win, int64_t addr, int64_t count, int64_t type, int64_t size, int64_t rank,
                               int64_t disp, int64_t op) {
  return update(win, addr, 0, count, type, size, rank, disp, op);
}

static int compiled_fetch_and_op(int64_t win, int64_t origin, int64_t result, int64_t type, int64_t size, int64_t rank,
                                 int64_t disp, int64_t op) {
  return update(win, origin, result, 1, type, size, rank, disp, op);
}

static int flush(int64_t win, int64_t rank) {
  gm_desc *d = gm_forked ? NULL : descriptor(win);
  if (d && !raised && flushed_at_once(d, rank)) return 0;
  RETURN_BLOCKING(gm_flush(win, rank, &pending));
}

static int compiled_flush(int64_t win, int64_t rank) {
  if (rank == -1) return compiled_refused(GM_ERR_RANK); /* to gm_flush this is every rank */
  return flush(win, rank);
}

static int compiled_flush_all(int64_t win) { return flush(win, -1); }

/* For Python
   ---------- */

#define NAMED(name) {#name, (void *)compiled_##name}
static const struct {
  const char *name;
  void *address;
} table[] = {NAMED(initialized), NAMED(last_error), NAMED(refused), NAMED(wtime),      NAMED(rank),
             NAMED(size),        NAMED(send),       NAMED(recv),    NAMED(sendrecv),   NAMED(isend),
             NAMED(irecv),       NAMED(keep),       NAMED(collect), NAMED(wait),       NAMED(waitall),
             NAMED(waitany),     NAMED(test),       NAMED(testall), NAMED(testany),    NAMED(barrier),
             NAMED(bcast),       NAMED(scatter),    NAMED(gather),  NAMED(allgather),  NAMED(reduce),
             NAMED(allreduce),   NAMED(put),        NAMED(get),     NAMED(accumulate), NAMED(fetch_and_op),
             NAMED(flush),       NAMED(flush_all)};

PyObject *compiled_addresses(PyObject *self, PyObject *noargs) {
  PyObject *all = PyDict_New();
  for (size_t i = 0; all && i < sizeof table / sizeof *table; i++) {
    PyObject *address = PyLong_FromVoidPtr(table[i].address);
    if (!address || PyDict_SetItemString(all, table[i].name, address) < 0) Py_CLEAR(all);
    Py_XDECREF(address);
  }
  return all;
}
