/* The hot methods of Win that access memory. Their usual arguments are read here, and checked against the window's
   descriptor, which Go keeps up to date (rma.Desc). Put and Get copy where the target is mapped here, and make a system
   call where the kernel copies (kernel_copy.c): neither enters Go. Atomics enter it once. Where a window completes
   every operation at once, the general call is made from here. Everything else, and what is not allowed, goes to the
   Python method of the same name (fallback.c).

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
   to do it, or the code of an error. What general_call has done is noted for recordings; the callers note the rest. */

static gm_operand operand(const spec *s) { return (gm_operand){(int64_t)(intptr_t)s->view.buf, s->count, s->type}; }

int returns_origin(const gm_desc *d, int kind, int64_t bytes, int64_t rank) {
  if (d->flags & GM_DESC_COMPLETE_ON_RETURN) return 1;
  if (rank < 0 || rank >= d->size || !(d->target[rank].flags & GM_TARGET_MESSAGES)) return 0;
  return kind == GM_ACC || (kind == GM_PUT && bytes <= GM_SHORT_PUT);
}

/* What is not direct, and does not keep the buffers in use: makes the general call, without going through Python.
   req: receives the request of a call that returns one, else NULL. Returns 0 if it was refused; Python then makes it
   again, and says why. What a fault has ended midway is not done twice. */
static int general_call(gm_desc *d, PyObject *self, int kind, spec *s, spec *result, int64_t rank,
                        gm_target_spec target, int op, int64_t *req) {
  int code;
  if (!returns_origin(d, kind, s->count * s->size, rank)) return 0;
  gm_access a = {.kind = kind,
                 .win = ((WinObject *)self)->h,
                 .origin = operand(s),
                 .result = result ? operand(result) : (gm_operand){0, 0, s->type},
                 .rank = rank,
                 .target = target,
                 .op = op};
  WITHOUT_GIL(code = req ? gm_rma_request(&a, req) : gm_rma(&a));
  if (code == 0) {
    if (TRACING) trace_note_access(&a);
    return GM_DONE;
  }
  int class = error_class(code);
  return class == GM_ERR_BUFFER || class == GM_ERR_INTERN ? code : 0;
}

/* The target side with as many items of the same datatype as the origin. */
static gm_target_spec same_items(const spec *s, int64_t disp) { return (gm_target_spec){disp, s->count, s->type}; }

/* The target side of any datatype, with integers of Python alone. Returns -1 for anything else. */
static int target_spec(PyObject *o, const spec *s, gm_target_spec *to) {
  *to = same_items(s, 0);
  if (!o || o == Py_None) return 0;
  if (PyLong_Check(o)) return parse_int(o, &to->disp);
  if (!PyList_CheckExact(o) && !PyTuple_CheckExact(o)) return -1;
  Py_ssize_t k = PySequence_Fast_GET_SIZE(o);
  int64_t *integers[] = {&to->disp, &to->count};
  if (k < 1 || k > 3) return -1;
  for (Py_ssize_t i = 0; i < k && i < 2; i++) {
    PyObject *item = PySequence_Fast_GET_ITEM(o, i);
    if (!PyLong_Check(item) || parse_int(item, integers[i]) < 0) return -1;
  }
  if (k < 3) return 0;
  PyObject *t = PySequence_Fast_GET_ITEM(o, 2);
  if (!PyObject_TypeCheck(t, DatatypeType)) return -1;
  to->datatype = ((DatatypeObject *)t)->h;
  return 0;
}

/* Where an accumulate has its items at the target, if these are like the origin's. Returns -1 if they are not. */
static int target_items(PyObject *o, const spec *s, int64_t *disp) {
  gm_target_spec to;
  if (target_spec(o, s, &to) < 0 || to.count != s->count || to.datatype != s->type) return -1;
  *disp = to.disp;
  return 0;
}

/* What a call returns that has been done: None, or the request that it returns. */
static PyObject *done_with(int64_t *req) {
  if (req) return new_request(*req, NULL);
  Py_RETURN_NONE;
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

/* Whether a call may access a rank at once: one that returns a request may in passive-target epochs only. */
static int at_once(const gm_desc *d, int64_t rank, const int64_t *req) {
  return !req || (rank >= 0 && rank < d->size && locked(d, &d->target[rank]));
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
  if (op == GM_OP_NO_OP) return 0; /* Go only reads */
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

/* Put and Get, and with req Rput and Rget. A request is that of a send that is complete, unless Go makes one. */
static PyObject *transfer(HOT, int which, int put, int64_t *req) {
  static const char *const names[] = {"origin", "target_rank", "target", NULL};
  PyObject *a[3];
  spec s;
  int64_t rank, at;
  gm_target_spec to;
  int done = 0;
  gm_desc *d = win_descriptor(self);
  if (!d || match_args(names, 2, args, n, kwnames, a) < 0 || parse_int(a[1], &rank) < 0 ||
      parse_message(a[0], !put, &s) < 0)
    FALL_BACK(which);
  int64_t bytes = s.count * s.size;
  to = same_items(&s, 0);
  if (!s.apart && target_disp(a[2], bytes, &to.disp) == 0) {
    gm_target *t = at_once(d, rank, req) ? reach(d, rank, to.disp, bytes, &at) : NULL;
    if (t) done = direct(d, t, put, s.view.buf, at, bytes);
    if (t && !done)
      done = req ? kernel_copy(d, t, put, s.view.buf, at, bytes) : copied(d, t, put, s.view.buf, at, bytes);
    if (TRACING && done == GM_DONE) note(d, rank, to.disp, bytes, 0);
  } else if (target_spec(a[2], &s, &to) < 0) {
    PyBuffer_Release(&s.view);
    FALL_BACK(which);
  }
  if (!done) done = general_call(d, self, put ? GM_PUT : GM_GET, &s, NULL, rank, to, 0, req);
  PyBuffer_Release(&s.view);
  if (!done) FALL_BACK(which);
  return done == GM_DONE ? done_with(req) : raise_code(done);
}

static PyObject *win_put(HOT) { return transfer(self, args, n, kwnames, CALL_PUT, 1, NULL); }
static PyObject *win_get(HOT) { return transfer(self, args, n, kwnames, CALL_GET, 0, NULL); }

static PyObject *win_rput(HOT) {
  int64_t req = GM_REQUEST_SENT;
  return transfer(self, args, n, kwnames, CALL_RPUT, 1, &req);
}

static PyObject *win_rget(HOT) {
  int64_t req = GM_REQUEST_SENT;
  return transfer(self, args, n, kwnames, CALL_RGET, 0, &req);
}

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

/* Accumulate, and with req Raccumulate. */
static PyObject *accumulate(HOT, int which, int64_t *req) {
  static const char *const names[] = {"origin", "target_rank", "target", "op", NULL};
  PyObject *a[4];
  spec s;
  int64_t rank, disp;
  int op, done = 0;
  gm_desc *d = win_descriptor(self);
  if (!d || match_args(names, 2, args, n, kwnames, a) < 0 || parse_int(a[1], &rank) < 0 || (op = op_number(a[3])) < 0 ||
      op == GM_OP_NO_OP || parse_spec(a[0], 0, &s) < 0)
    FALL_BACK(which);
  if (target_items(a[2], &s, &disp) == 0 && s.count * s.size <= LONG_COPY) {
    if (at_once(d, rank, req)) done = updated(d, op, s.type, s.view.buf, NULL, s.count, s.size, rank, disp);
    if (TRACING && done == GM_DONE) note(d, rank, disp, s.count * s.size, op);
    if (!done) done = general_call(d, self, GM_ACC, &s, NULL, rank, same_items(&s, disp), op, req);
  }
  PyBuffer_Release(&s.view);
  if (!done) FALL_BACK(which);
  return done == GM_DONE ? done_with(req) : raise_code(done);
}

static PyObject *win_accumulate(HOT) { return accumulate(self, args, n, kwnames, CALL_ACCUMULATE, NULL); }

static PyObject *win_raccumulate(HOT) {
  int64_t req = GM_REQUEST_SENT;
  return accumulate(self, args, n, kwnames, CALL_RACCUMULATE, &req);
}

/* Get_accumulate, and with req Rget_accumulate. */
static PyObject *get_accumulate(HOT, int which, int64_t *req) {
  static const char *const names[] = {"origin", "result", "target_rank", "target", "op", NULL};
  PyObject *a[5];
  spec s, r;
  int64_t rank, disp;
  int op, done = 0;
  gm_desc *d = win_descriptor(self);
  if (!d || match_args(names, 3, args, n, kwnames, a) < 0 || parse_int(a[2], &rank) < 0 || (op = op_number(a[4])) < 0 ||
      parse_spec(a[0], 0, &s) < 0)
    FALL_BACK(which);
  if (parse_spec(a[1], 1, &r) == 0) {
    if (s.count == r.count && s.type == r.type && s.count * s.size <= LONG_COPY && target_items(a[3], &s, &disp) == 0) {
      if (at_once(d, rank, req)) done = updated(d, op, s.type, s.view.buf, r.view.buf, s.count, s.size, rank, disp);
      if (TRACING && done == GM_DONE) note(d, rank, disp, s.count * s.size, op);
      if (!done) done = general_call(d, self, GM_GET_ACC, &s, &r, rank, same_items(&s, disp), op, req);
    }
    PyBuffer_Release(&r.view);
  }
  PyBuffer_Release(&s.view);
  if (!done) FALL_BACK(which);
  return done == GM_DONE ? done_with(req) : raise_code(done);
}

static PyObject *win_get_accumulate(HOT) { return get_accumulate(self, args, n, kwnames, CALL_GET_ACCUMULATE, NULL); }

static PyObject *win_rget_accumulate(HOT) {
  int64_t req = GM_REQUEST_SENT;
  return get_accumulate(self, args, n, kwnames, CALL_RGET_ACCUMULATE, &req);
}

static PyObject *win_fetch_and_op(HOT) {
  static const char *const names[] = {"origin", "result", "target_rank", "target_disp", "op", NULL};
  PyObject *a[5];
  spec s, r;
  int64_t rank, disp = 0;
  int op, done = 0;
  gm_desc *d = win_descriptor(self);
  if (!d || match_args(names, 3, args, n, kwnames, a) < 0 || parse_int(a[2], &rank) < 0 || (op = op_number(a[4])) < 0 ||
      (a[3] && parse_int(a[3], &disp) < 0) || parse_spec(a[0], 0, &s) < 0)
    FALL_BACK(CALL_FETCH_AND_OP);
  if (parse_spec(a[1], 1, &r) == 0) {
    if (s.count == 1 && r.count == 1 && s.type == r.type) {
      done = updated(d, op, s.type, s.view.buf, r.view.buf, 1, s.size, rank, disp);
      if (TRACING && done == GM_DONE) note(d, rank, disp, s.size, op);
      if (!done) done = general_call(d, self, GM_FETCH_OP, &s, &r, rank, same_items(&s, disp), op, NULL);
    }
    PyBuffer_Release(&r.view);
  }
  PyBuffer_Release(&s.view);
  if (!done) FALL_BACK(CALL_FETCH_AND_OP);
  return done == GM_DONE ? done_with(NULL) : raise_code(done);
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

TRACED(win_put, CALL_PUT)
TRACED(win_get, CALL_GET)
TRACED(win_accumulate, CALL_ACCUMULATE)
TRACED(win_get_accumulate, CALL_GET_ACCUMULATE)
TRACED(win_rput, CALL_RPUT)
TRACED(win_rget, CALL_RGET)
TRACED(win_raccumulate, CALL_RACCUMULATE)
TRACED(win_rget_accumulate, CALL_RGET_ACCUMULATE)
TRACED(win_fetch_and_op, CALL_FETCH_AND_OP)
TRACED(win_compare_and_swap, CALL_COMPARE_AND_SWAP)

PyMethodDef win_methods[] = {
    HOT_METHOD("Put", traced_win_put, "($self, origin, target_rank, target=None)"),
    HOT_METHOD("Get", traced_win_get, "($self, origin, target_rank, target=None)"),
    HOT_METHOD("Accumulate", traced_win_accumulate, "($self, origin, target_rank, target=None, op=...)"),
    HOT_METHOD("Get_accumulate", traced_win_get_accumulate,
               "($self, origin, result, target_rank, target=None, op=...)"),
    HOT_METHOD("Rput", traced_win_rput, "($self, origin, target_rank, target=None)"),
    HOT_METHOD("Rget", traced_win_rget, "($self, origin, target_rank, target=None)"),
    HOT_METHOD("Raccumulate", traced_win_raccumulate, "($self, origin, target_rank, target=None, op=...)"),
    HOT_METHOD("Rget_accumulate", traced_win_rget_accumulate,
               "($self, origin, result, target_rank, target=None, op=...)"),
    HOT_METHOD("Fetch_and_op", traced_win_fetch_and_op, "($self, origin, result, target_rank, target_disp=0, op=...)"),
    HOT_METHOD("Compare_and_swap", traced_win_compare_and_swap,
               "($self, origin, compare, result, target_rank, target_disp=0)"),
    {0}};
