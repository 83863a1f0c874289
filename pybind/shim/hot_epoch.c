/* The hot methods of Win that begin and end epochs, or complete operations. As in hot_win.c, the Python method of
   the same name gets what is unusual. Where operations may go on after their calls, it also releases their memory.

   They are called with the GIL held. */
#include "hot_win.h"
#include "_cgo_export.h"

/* The window's descriptor, if every operation is over when its call returns; else NULL. */
static gm_desc *complete_on_return(PyObject *self) {
  gm_desc *d = win_descriptor(self);
  return d && (d->flags & GM_DESC_COMPLETE_ON_RETURN) ? d : NULL;
}

/* What a call returns that has begun: it goes on with one that is not over. */
static PyObject *end_of(int code, int64_t pending) {
  gm_status own;
  if (code == GM_INTERRUPTED) code = resume(pending, &own);
  return none_or(code);
}

/* A flush has nothing to wait for where every operation is complete at once. It writes puts that were bundled. */
static PyObject *flush(HOT, int which) {
  static const char *const names[] = {"rank", NULL};
  PyObject *a[1];
  int64_t rank, at;
  const gm_target *t;
  gm_desc *d = complete_on_return(self);
  if (!d || match_args(names, 1, args, n, kwnames, a) < 0 || parse_int(a[0], &rank) < 0 ||
      !(t = reach(d, rank, 0, 0, &at)) || !locked(d, t) || !complete_bundled(d, rank))
    FALL_BACK(which);
  NOTE_WIN(d->handle, rank, -1);
  Py_RETURN_NONE;
}

static PyObject *win_flush(HOT) { return flush(self, args, n, kwnames, CALL_FLUSH); }
static PyObject *win_flush_local(HOT) { return flush(self, args, n, kwnames, CALL_FLUSH_LOCAL); }

static PyObject *flush_all(HOT, int which) {
  gm_desc *d = complete_on_return(self);
  if (!d || n || kwnames || d->open != GM_OPEN_LOCK_ALL || !complete_bundled(d, -1)) FALL_BACK(which);
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
  if (!win_descriptor(self) || match_args(names, 1, args, n, kwnames, a) < 0 || parse_int(a[0], &rank) < 0 ||
      (a[1] && parse_int(a[1], &kind) < 0) || (a[2] && parse_int(a[2], &assertion) < 0))
    FALL_BACK(CALL_LOCK);
  NOTE_WIN(((WinObject *)self)->h, rank, kind);
  /* Neither this nor the calls that end an epoch wait: the GIL stays held. */
  code = gm_lock(((WinObject *)self)->h, rank, kind, assertion, &pending);
  return end_of(code, pending);
}

static PyObject *win_unlock(HOT) {
  static const char *const names[] = {"rank", NULL};
  PyObject *a[1];
  int64_t rank, pending = 0;
  int code;
  if (!win_descriptor(self) || match_args(names, 1, args, n, kwnames, a) < 0 || parse_int(a[0], &rank) < 0)
    FALL_BACK(CALL_UNLOCK);
  NOTE_WIN(((WinObject *)self)->h, rank, -1);
  code = gm_unlock(((WinObject *)self)->h, rank, &pending);
  return end_of(code, pending);
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

static PyObject *win_lock_all(HOT) {
  static const char *const names[] = {"assertion", NULL};
  PyObject *a[1];
  int64_t assertion = 0, pending = 0;
  if (!win_descriptor(self) || match_args(names, 0, args, n, kwnames, a) < 0 ||
      (a[0] && parse_int(a[0], &assertion) < 0))
    FALL_BACK(CALL_LOCK_ALL);
  NOTE_WIN(((WinObject *)self)->h, TRACE_NO_PEER, -1);
  int code = gm_lock_all(((WinObject *)self)->h, assertion, &pending);
  return end_of(code, pending);
}

static PyObject *win_unlock_all(HOT) {
  int64_t pending = 0;
  gm_desc *d = complete_on_return(self);
  if (!d || n || kwnames) FALL_BACK(CALL_UNLOCK_ALL);
  NOTE_WIN(d->handle, TRACE_NO_PEER, -1);
  int code = gm_unlock_all(d->handle, &pending);
  return end_of(code, pending);
}

static PyObject *win_sync(HOT) {
  gm_desc *d = win_descriptor(self);
  if (!d || n || kwnames || !complete_bundled(d, -1)) FALL_BACK(CALL_SYNC);
  NOTE_WIN(d->handle, TRACE_NO_PEER, -1);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  Py_RETURN_NONE;
}

/* Reads the arguments of Post and Start. */
static int read_group(HOT, int64_t *group, int64_t *assertion) {
  static const char *const names[] = {"group", "assertion", NULL};
  PyObject *a[2];
  *assertion = 0;
  if (!win_descriptor(self) || match_args(names, 1, args, n, kwnames, a) < 0 || !PyObject_TypeCheck(a[0], GroupType) ||
      (a[1] && parse_int(a[1], assertion) < 0))
    return -1;
  *group = ((HandleObject *)a[0])->h;
  return 0;
}

static PyObject *win_post(HOT) {
  int64_t group, assertion;
  if (read_group(self, args, n, kwnames, &group, &assertion) < 0) FALL_BACK(CALL_POST);
  NOTE_WIN(((WinObject *)self)->h, TRACE_NO_PEER, -1);
  return none_or(gm_win_post(((WinObject *)self)->h, group, assertion));
}

static PyObject *win_start(HOT) {
  int64_t group, assertion, pending = 0;
  int code;
  gm_status own;
  if (read_group(self, args, n, kwnames, &group, &assertion) < 0) FALL_BACK(CALL_START_ACCESS);
  NOTE_WIN(((WinObject *)self)->h, TRACE_NO_PEER, -1);
  BLOCKING(code, pending, &own, gm_win_start(((WinObject *)self)->h, group, assertion, &pending));
  return none_or(code);
}

static PyObject *win_complete(HOT) {
  int64_t pending = 0;
  gm_desc *d = complete_on_return(self);
  if (!d || n || kwnames) FALL_BACK(CALL_COMPLETE);
  NOTE_WIN(d->handle, TRACE_NO_PEER, -1);
  int code = gm_win_complete(d->handle, &pending);
  return end_of(code, pending);
}

static PyObject *win_wait(HOT) {
  int64_t pending = 0;
  int code;
  gm_status own;
  if (!win_descriptor(self) || n || kwnames) FALL_BACK(CALL_WAIT_EXPOSED);
  NOTE_WIN(((WinObject *)self)->h, TRACE_NO_PEER, -1);
  BLOCKING(code, pending, &own, gm_win_wait(((WinObject *)self)->h, &pending));
  if (code) return none_or(code);
  Py_RETURN_TRUE;
}

TRACED(win_flush, CALL_FLUSH)
TRACED(win_flush_local, CALL_FLUSH_LOCAL)
TRACED(win_flush_all, CALL_FLUSH_ALL)
TRACED(win_flush_local_all, CALL_FLUSH_LOCAL_ALL)
TRACED(win_lock, CALL_LOCK)
TRACED(win_unlock, CALL_UNLOCK)
TRACED(win_lock_all, CALL_LOCK_ALL)
TRACED(win_unlock_all, CALL_UNLOCK_ALL)
TRACED(win_fence, CALL_FENCE)
TRACED(win_sync, CALL_SYNC)
TRACED(win_post, CALL_POST)
TRACED(win_start, CALL_START_ACCESS)
TRACED(win_complete, CALL_COMPLETE)
TRACED(win_wait, CALL_WAIT_EXPOSED)

PyMethodDef win_epoch_methods[] = {HOT_METHOD("Flush", traced_win_flush, "($self, rank)"),
                                   HOT_METHOD("Flush_local", traced_win_flush_local, "($self, rank)"),
                                   HOT_METHOD("Flush_all", traced_win_flush_all, "($self)"),
                                   HOT_METHOD("Flush_local_all", traced_win_flush_local_all, "($self)"),
                                   HOT_METHOD("Lock", traced_win_lock, "($self, rank, lock_type=1, assertion=0)"),
                                   HOT_METHOD("Unlock", traced_win_unlock, "($self, rank)"),
                                   HOT_METHOD("Lock_all", traced_win_lock_all, "($self, assertion=0)"),
                                   HOT_METHOD("Unlock_all", traced_win_unlock_all, "($self)"),
                                   HOT_METHOD("Fence", traced_win_fence, "($self, assertion=0)"),
                                   HOT_METHOD("Sync", traced_win_sync, "($self)"),
                                   HOT_METHOD("Post", traced_win_post, "($self, group, assertion=0)"),
                                   HOT_METHOD("Start", traced_win_start, "($self, group, assertion=0)"),
                                   HOT_METHOD("Complete", traced_win_complete, "($self)"),
                                   HOT_METHOD("Wait", traced_win_wait, "($self)"),
                                   {0}};
