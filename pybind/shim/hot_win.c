/* The hot methods of Win. Their usual arguments are read here, and checked against the window's descriptor, which
   Go keeps up to date (rma.Desc). Put and Get copy where the target is mapped here, and make a system call where the
   kernel copies (kernel_copy.c): neither enters Go. Atomics enter it once. Where a window completes every operation
   at once, the general call is made from here. Everything else, and what is not allowed, goes to the Python method of
   the same name (fallback.c).

   They are called with the GIL held. */
#include "hot_win.h"
#include "_cgo_export.h"

gm_desc *win_descriptor(PyObject *self) {
  WinObject *w = (WinObject *)self;
  if (gm_forked || w->h == 0) return NULL;
  if (!w->desc || w->desc->handle != w->h) {
    w->desc = gm_win_desc(w->h);
    if (!w->desc || w->desc->handle != w->h) return NULL;
  }
  return w->desc;
}

int target_disp(PyObject *o, int64_t bytes, int64_t *disp) {
  *disp = 0;
  if (!o || o == Py_None) return 0;
  if (PyLong_Check(o)) return parse_int(o, disp);
  if (!PyList_CheckExact(o) && !PyTuple_CheckExact(o)) return -1;
  Py_ssize_t k = PySequence_Fast_GET_SIZE(o);
  if (k != 1 && k != 3) return -1;
  PyObject *where = PySequence_Fast_GET_ITEM(o, 0), *c = NULL, *t = NULL;
  if (k == 3) {
    c = PySequence_Fast_GET_ITEM(o, 1), t = PySequence_Fast_GET_ITEM(o, 2);
    if (!PyObject_TypeCheck(t, DatatypeType)) return -1;
  }
  Py_INCREF(where), Py_XINCREF(c), Py_XINCREF(t);
  int usual = parse_int(where, disp) == 0;
  if (usual && k == 3) {
    DatatypeObject *d = (DatatypeObject *)t;
    int64_t count, asked;
    usual = parse_int(c, &count) == 0 && datatype_communicates(d) && count >= 0 &&
            !__builtin_mul_overflow(count, d->shape.size, &asked) && asked == bytes;
  }
  Py_DECREF(where), Py_XDECREF(c), Py_XDECREF(t);
  return usual ? 0 : -1;
}

/* An operation is done by general_call, direct, copied, gm_hot_acc or gm_hot_cas. Each returns GM_DONE, 0 if another is
   to do it, or the code of an error. */

static gm_operand operand(const spec *s) { return (gm_operand){(int64_t)(intptr_t)s->view.buf, s->count, s->type}; }

int returns_origin(const gm_desc *d, int kind, int64_t bytes, int64_t rank) {
  if (d->flags & GM_DESC_COMPLETE_ON_RETURN) return 1;
  if (rank < 0 || rank >= d->size || !(d->target[rank].flags & GM_TARGET_MESSAGES)) return 0;
  return kind == GM_ACC || (kind == GM_PUT && bytes <= GM_SHORT_PUT);
}

/* What is not direct, and does not keep the buffers in use: makes the general call, without going through Python.
   Returns 0 if it was refused; Python then makes it again, and says why. What a fault has ended midway is not done
   twice. */
static int general_call(gm_desc *d, PyObject *self, int kind, spec *s, spec *result, int64_t rank, int64_t disp,
                        int op) {
  int code;
  if (!returns_origin(d, kind, s->count * s->size, rank)) return 0;
  gm_access a = {.kind = kind,
                 .win = ((WinObject *)self)->h,
                 .origin = operand(s),
                 .result = result ? operand(result) : (gm_operand){0, 0, s->type},
                 .rank = rank,
                 .target = {disp, s->count, s->type},
                 .op = op};
  WITHOUT_GIL(code = gm_rma(&a));
  if (code == 0) return GM_DONE;
  int class = error_class(code);
  return class == GM_ERR_BUFFER || class == GM_ERR_INTERN ? code : 0;
}

gm_target *reach(gm_desc *d, int64_t rank, int64_t disp, int64_t n, int64_t *at) {
  if (rank < 0 || rank >= d->size || disp < 0) return NULL;
  gm_target *t = &d->target[rank];
  if (t->unit > 1) {
    if (disp > t->bytes / t->unit) return NULL;
    disp *= t->unit;
  }
  if (disp > t->bytes || n > t->bytes - disp) return NULL;
  *at = disp;
  return t;
}

/* A passive-target epoch. */
static int locked(const gm_desc *d, const gm_target *t) {
  return d->open == GM_OPEN_LOCK_ALL || (t->open & GM_TARGET_LOCKED);
}

/* Moves n bytes to (put) or from a target that is mapped in this process. memmove: a rank may access its own part,
   and the ranges may be the same. */
static int direct(const gm_desc *d, const gm_target *t, int put, void *p, int64_t at, int64_t n) {
  if (!t->base || !accessible(d, t)) return 0;
  char *there = (char *)t->base + at;
  return program_copy(put ? there : p, put ? p : there, n) ? gm_faulted(guard_address()) : GM_DONE;
}

/* Does the same by the kernel, in passive-target epochs, where rma has found that it copies. */
static int copied(gm_desc *d, gm_target *t, int put, void *p, int64_t at, int64_t n) {
  if (!locked(d, t)) return 0;
  return put ? kernel_put(d, t, p, at, n) : kernel_copy(d, t, 0, p, at, n);
}

/* Where n bytes lie that the processor may update atomically; NULL if they do not. */
static void *atomic_place(gm_desc *d, int64_t rank, int64_t disp, int64_t n) {
  int64_t at;
  const gm_target *t = reach(d, rank, disp, n, &at);
  return t && t->base && accessible(d, t) && (t->flags & GM_TARGET_ATOMIC) ? (char *)t->base + at : NULL;
}

/* Where n bytes lie that the kernel copies to be updated: NULL if it does not, or if there are too many of them. */
static const gm_target *copied_place(gm_desc *d, int64_t rank, int64_t disp, int64_t n, int64_t *at) {
  const gm_target *t = n > GM_SHORT_UPDATE ? NULL : reach(d, rank, disp, n, at);
  return t && !t->base && (t->flags & GM_TARGET_COPY) && locked(d, t) ? t : NULL;
}

/* An accumulate, or with result a fetch, that is an atomic instruction or two copies by the kernel. */
static int updated(gm_desc *d, int op, int64_t type, void *origin, void *result, int64_t count, int64_t size,
                   int64_t rank, int64_t disp) {
  int64_t at, bytes = count * size;
  void *to = atomic_place(d, rank, disp, bytes);
  if (to) return gm_hot_acc(to, op, type, origin, result, count);
  return copied_place(d, rank, disp, bytes, &at) ? gm_hot_update(d->handle, rank, at, op, type, origin, result, count)
                                                 : 0;
}

/* The calls of compiled.c, which have no GIL to give up. */

int transfer_at_once(gm_desc *d, int put, void *p, int64_t n, int64_t rank, int64_t disp) {
  int64_t at;
  gm_target *t = reach(d, rank, disp, n, &at);
  if (!t) return 0;
  if (!t->base || !accessible(d, t)) return copied(d, t, put, p, at, n);
  char *there = (char *)t->base + at;
  return guarded_copy(put ? there : p, put ? p : there, n) ? gm_faulted(guard_address()) : GM_DONE;
}

int update_at_once(gm_desc *d, int64_t op, int64_t type, void *origin, void *result, int64_t count, int64_t size,
                   int64_t rank, int64_t disp) {
  if (op == GM_OP_NO_OP || op != (int)op) return 0;
  return updated(d, (int)op, type, origin, result, count, size, rank, disp);
}

int flushed_at_once(gm_desc *d, int64_t rank) {
  int64_t at;
  if (!(d->flags & GM_DESC_COMPLETE_ON_RETURN)) return 0;
  if (rank == -1) return d->open == GM_OPEN_LOCK_ALL && complete_bundled(d, -1);
  const gm_target *t = reach(d, rank, 0, 0, &at);
  return t && locked(d, t) && complete_bundled(d, rank);
}

/* Records what has been done. What was left to Python is noted by raw_rma. */
static void note(gm_desc *d, int64_t rank, int64_t disp, int64_t bytes, int op) {
  if (rank >= 0 && rank < d->size) disp *= d->target[rank].unit;
  trace_note_rma(d->handle, rank, disp, bytes, bytes, op);
}

static PyObject *transfer(HOT, int which) {
  static const char *const names[] = {"origin", "target_rank", "target", NULL};
  PyObject *a[3];
  spec s;
  int64_t rank, disp;
  gm_desc *d = win_descriptor(self);
  if (!d || match_args(names, 2, args, n, kwnames, a) < 0 || parse_int(a[1], &rank) < 0 ||
      parse_spec(a[0], which == CALL_GET, &s) < 0)
    FALL_BACK(which);
  int64_t bytes = s.count * s.size;
  if (target_disp(a[2], bytes, &disp) < 0) {
    PyBuffer_Release(&s.view);
    FALL_BACK(which);
  }
  int done = 0, put = which == CALL_PUT;
  int64_t at;
  gm_target *t = reach(d, rank, disp, bytes, &at);
  if (t) done = direct(d, t, put, s.view.buf, at, bytes);
  if (t && !done) done = copied(d, t, put, s.view.buf, at, bytes);
  if (!done) done = general_call(d, self, put ? GM_PUT : GM_GET, &s, NULL, rank, disp, 0);
  PyBuffer_Release(&s.view);
  if (!done) FALL_BACK(which);
  if (done != GM_DONE) return raise_code(done);
  if (TRACING) note(d, rank, disp, bytes, 0);
  Py_RETURN_NONE;
}

static PyObject *win_put(HOT) { return transfer(self, args, n, kwnames, CALL_PUT); }
static PyObject *win_get(HOT) { return transfer(self, args, n, kwnames, CALL_GET); }

/* put_notify(win, origin, target_rank, target, slot): makes a put, and notifies the target, if the put completes in its
   call. Returns False if not, and if anything is unusual: gormapy.notify then does it step by step. */
PyObject *raw_put_notify(ARGS) {
  spec s;
  int64_t rank, slot, disp, at;
  int done = 0;
  gm_desc *d;
  if (n != 5 || !PyObject_TypeCheck(args[0], WinType) || !(d = win_descriptor(args[0])) ||
      !(d->flags & GM_DESC_COMPLETE_ON_RETURN) || parse_int(args[2], &rank) < 0 || parse_int(args[4], &slot) < 0 ||
      slot < 0 || slot >= GM_NOTIFY_SLOTS || parse_spec(args[1], 0, &s) < 0)
    Py_RETURN_FALSE;
  int64_t bytes = s.count * s.size;
  gm_target *t = target_disp(args[3], bytes, &disp) < 0 ? NULL : reach(d, rank, disp, bytes, &at);
  if (t && t->notify && locked(d, t) && !bundle_failed(d) && !__atomic_load_n(t->ended, __ATOMIC_RELAXED)) {
    done = direct(d, t, 1, s.view.buf, at, bytes);
    if (!done) done = kernel_copy(d, t, 1, s.view.buf, at, bytes);
  }
  PyBuffer_Release(&s.view);
  if (!done) Py_RETURN_FALSE;
  if (done != GM_DONE) return raise_code(done);
  /* as notifications.add does */
  __atomic_fetch_add(&t->notify->counters[slot], 1, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&t->notify->waiting, __ATOMIC_SEQ_CST)) gm_ring(d->handle, rank);
  if (TRACING) note(d, rank, disp, bytes, 0);
  Py_RETURN_TRUE;
}

static PyObject *win_accumulate(HOT) {
  static const char *const names[] = {"origin", "target_rank", "target", "op", NULL};
  PyObject *a[4];
  spec s;
  int64_t rank, disp;
  int op, done = 0;
  gm_desc *d = win_descriptor(self);
  if (!d || match_args(names, 2, args, n, kwnames, a) < 0 || parse_int(a[1], &rank) < 0 || (op = op_number(a[3])) < 0 ||
      op == GM_OP_NO_OP || (a[2] && a[2] != Py_None && !PyLong_Check(a[2])) || parse_spec(a[0], 0, &s) < 0)
    FALL_BACK(CALL_ACCUMULATE);
  if (target_disp(a[2], s.count * s.size, &disp) == 0 && s.count * s.size <= LONG_COPY) {
    done = updated(d, op, s.type, s.view.buf, NULL, s.count, s.size, rank, disp);
    if (!done) done = general_call(d, self, GM_ACC, &s, NULL, rank, disp, op);
  }
  PyBuffer_Release(&s.view);
  if (!done) FALL_BACK(CALL_ACCUMULATE);
  if (done != GM_DONE) return raise_code(done);
  if (TRACING) note(d, rank, disp, s.count * s.size, op);
  Py_RETURN_NONE;
}

static PyObject *win_fetch_and_op(HOT) {
  static const char *const names[] = {"origin", "result", "target_rank", "target_disp", "op", NULL};
  PyObject *a[5];
  spec s, r;
  int64_t rank, disp = 0;
  int op, done = 0;
  gm_desc *d = win_descriptor(self);
  if (!d || match_args(names, 3, args, n, kwnames, a) < 0 || parse_int(a[2], &rank) < 0 || (op = op_number(a[4])) < 0 ||
      op == GM_OP_NO_OP || (a[3] && parse_int(a[3], &disp) < 0) || parse_spec(a[0], 0, &s) < 0)
    FALL_BACK(CALL_FETCH_AND_OP);
  if (parse_spec(a[1], 1, &r) == 0) {
    if (s.count == 1 && r.count == 1 && s.type == r.type) {
      done = updated(d, op, s.type, s.view.buf, r.view.buf, 1, s.size, rank, disp);
      if (!done) done = general_call(d, self, GM_FETCH_OP, &s, &r, rank, disp, op);
    }
    PyBuffer_Release(&r.view);
  }
  PyBuffer_Release(&s.view);
  if (!done) FALL_BACK(CALL_FETCH_AND_OP);
  if (done != GM_DONE) return raise_code(done);
  if (TRACING) note(d, rank, disp, s.size, op);
  Py_RETURN_NONE;
}

static PyObject *win_compare_and_swap(HOT) {
  static const char *const names[] = {"origin", "compare", "result", "target_rank", "target_disp", NULL};
  PyObject *a[5];
  spec s, c, r;
  int64_t rank, disp = 0;
  int done = 0;
  gm_desc *d = win_descriptor(self);
  if (!d || match_args(names, 4, args, n, kwnames, a) < 0 || parse_int(a[3], &rank) < 0 ||
      (a[4] && parse_int(a[4], &disp) < 0) || parse_spec(a[0], 0, &s) < 0)
    FALL_BACK(CALL_COMPARE_AND_SWAP);
  if (parse_spec(a[1], 0, &c) == 0) {
    if (parse_spec(a[2], 1, &r) == 0) {
      if (s.count == 1 && c.count == 1 && r.count == 1 && s.type == c.type && s.type == r.type) {
        int64_t at;
        void *to = atomic_place(d, rank, disp, s.size);
        if (to)
          done = gm_hot_cas(to, s.type, s.view.buf, c.view.buf, r.view.buf);
        else if (copied_place(d, rank, disp, s.size, &at))
          done = gm_hot_swap(d->handle, rank, at, s.type, s.view.buf, c.view.buf, r.view.buf);
      }
      PyBuffer_Release(&r.view);
    }
    PyBuffer_Release(&c.view);
  }
  PyBuffer_Release(&s.view);
  if (!done) FALL_BACK(CALL_COMPARE_AND_SWAP);
  if (done != GM_DONE) return raise_code(done);
  if (TRACING) note(d, rank, disp, s.size, 0);
  Py_RETURN_NONE;
}

/* A flush has nothing to wait for where every operation is complete at once. It writes puts that were bundled. */
static PyObject *flush(HOT, int which) {
  static const char *const names[] = {"rank", NULL};
  PyObject *a[1];
  int64_t rank, at;
  const gm_target *t;
  gm_desc *d = win_descriptor(self);
  if (!d || !(d->flags & GM_DESC_COMPLETE_ON_RETURN) || match_args(names, 1, args, n, kwnames, a) < 0 ||
      parse_int(a[0], &rank) < 0 || !(t = reach(d, rank, 0, 0, &at)) || !locked(d, t) || !complete_bundled(d, rank))
    FALL_BACK(which);
  NOTE_WIN(d->handle, rank, -1);
  Py_RETURN_NONE;
}

static PyObject *win_flush(HOT) { return flush(self, args, n, kwnames, CALL_FLUSH); }
static PyObject *win_flush_local(HOT) { return flush(self, args, n, kwnames, CALL_FLUSH_LOCAL); }

static PyObject *flush_all(HOT, int which) {
  gm_desc *d = win_descriptor(self);
  if (!d || n || kwnames || !(d->flags & GM_DESC_COMPLETE_ON_RETURN) || d->open != GM_OPEN_LOCK_ALL ||
      !complete_bundled(d, -1))
    FALL_BACK(which);
  NOTE_WIN(d->handle, TRACE_NO_PEER, -1);
  Py_RETURN_NONE;
}

static PyObject *win_flush_all(HOT) { return flush_all(self, args, n, kwnames, CALL_FLUSH_ALL); }
static PyObject *win_flush_local_all(HOT) { return flush_all(self, args, n, kwnames, CALL_FLUSH_LOCAL_ALL); }

static PyObject *win_lock(HOT) {
  static const char *const names[] = {"rank", "lock_type", "assertion", NULL};
  PyObject *a[3];
  int64_t rank, kind = GM_LOCK_EXCLUSIVE, assertion = 0, pending = 0;
  int code;
  gm_status own;
  if (!win_descriptor(self) || match_args(names, 1, args, n, kwnames, a) < 0 || parse_int(a[0], &rank) < 0 ||
      (a[1] && parse_int(a[1], &kind) < 0) || (a[2] && parse_int(a[2], &assertion) < 0))
    FALL_BACK(CALL_LOCK);
  NOTE_WIN(((WinObject *)self)->h, rank, kind);
  /* Neither this nor gm_unlock waits: the GIL stays held. */
  code = gm_lock(((WinObject *)self)->h, rank, kind, assertion, &pending);
  if (code == GM_INTERRUPTED) code = resume(pending, &own);
  return none_or(code);
}

static PyObject *win_unlock(HOT) {
  static const char *const names[] = {"rank", NULL};
  PyObject *a[1];
  int64_t rank, pending = 0;
  int code;
  gm_status own;
  if (!win_descriptor(self) || match_args(names, 1, args, n, kwnames, a) < 0 || parse_int(a[0], &rank) < 0)
    FALL_BACK(CALL_UNLOCK);
  NOTE_WIN(((WinObject *)self)->h, rank, -1);
  code = gm_unlock(((WinObject *)self)->h, rank, &pending);
  if (code == GM_INTERRUPTED) code = resume(pending, &own);
  return none_or(code);
}

static PyObject *win_fence(HOT) {
  static const char *const names[] = {"assertion", NULL};
  PyObject *a[1];
  int64_t assertion = 0, pending = 0;
  int code;
  gm_status own;
  if (!win_descriptor(self) || match_args(names, 0, args, n, kwnames, a) < 0 ||
      (a[0] && parse_int(a[0], &assertion) < 0))
    FALL_BACK(CALL_FENCE);
  NOTE_WIN(((WinObject *)self)->h, TRACE_NO_PEER, assertion);
  BLOCKING(code, pending, &own, gm_fence(((WinObject *)self)->h, assertion, &pending));
  return none_or(code);
}

TRACED(win_put, CALL_PUT)
TRACED(win_get, CALL_GET)
TRACED(win_accumulate, CALL_ACCUMULATE)
TRACED(win_fetch_and_op, CALL_FETCH_AND_OP)
TRACED(win_compare_and_swap, CALL_COMPARE_AND_SWAP)
TRACED(win_flush, CALL_FLUSH)
TRACED(win_flush_local, CALL_FLUSH_LOCAL)
TRACED(win_flush_all, CALL_FLUSH_ALL)
TRACED(win_flush_local_all, CALL_FLUSH_LOCAL_ALL)
TRACED(win_lock, CALL_LOCK)
TRACED(win_unlock, CALL_UNLOCK)
TRACED(win_fence, CALL_FENCE)

PyMethodDef win_methods[] = {
    HOT_METHOD("Put", traced_win_put, "($self, origin, target_rank, target=None)"),
    HOT_METHOD("Get", traced_win_get, "($self, origin, target_rank, target=None)"),
    HOT_METHOD("Accumulate", traced_win_accumulate, "($self, origin, target_rank, target=None, op=...)"),
    HOT_METHOD("Fetch_and_op", traced_win_fetch_and_op, "($self, origin, result, target_rank, target_disp=0, op=...)"),
    HOT_METHOD("Compare_and_swap", traced_win_compare_and_swap,
               "($self, origin, compare, result, target_rank, target_disp=0)"),
    HOT_METHOD("Flush", traced_win_flush, "($self, rank)"),
    HOT_METHOD("Flush_local", traced_win_flush_local, "($self, rank)"),
    HOT_METHOD("Flush_all", traced_win_flush_all, "($self)"),
    HOT_METHOD("Flush_local_all", traced_win_flush_local_all, "($self)"),
    HOT_METHOD("Lock", traced_win_lock, "($self, rank, lock_type=1, assertion=0)"),
    HOT_METHOD("Unlock", traced_win_unlock, "($self, rank)"),
    HOT_METHOD("Fence", traced_win_fence, "($self, assertion=0)"),
    {0}};
