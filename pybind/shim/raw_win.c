/* The raw calls of windows: making and freeing them, one-sided operations of any form, synchronisation.
   hot_win.c has the usual forms, without a detour through Python. */
#include "raw.h"
#include "_cgo_export.h"

/* DEFINE_MAKE(win_free, …) defines raw_win_free.

   A library that was loaded after gormapy may have put its handlers of faults before the guard's. Hot calls copy from
   and to windows, so the guard is armed again when one is made. */
DEFINE_MAKE(win_create, 7, "", NOTE_COMM(a[4], TRACE_NO_PEER, -1, a[2]),
            (guard_arm(0), gm_win_create(a[0], a[1], a[2], a[3], a[4], a[5], a[6], &made, &req)))
DEFINE_MAKE(win_free, 1, "", NOTE_WIN(a[0], TRACE_NO_PEER, -1), gm_win_free(a[0], &made, &req))

/* The integers of a gm_access, in its order. */
#define ACCESS "rma kind window origin count datatype result count datatype target_rank target count datatype op"
enum { ACCESS_INTEGERS = sizeof(gm_access) / sizeof(int64_t) };
_Static_assert(sizeof(gm_access) == 13 * sizeof(int64_t), "a gm_access is what ACCESS names");

/* rma(kind, win, address, count, datatype, result, count, datatype, rank, displacement, count, datatype, op).
   What is interrupted has not begun. */
static PyObject *raw_rma(ARGS) {
  gm_access a;
  int code;
  if (integers(ACCESS, args, n, ACCESS_INTEGERS, (int64_t *)&a) < 0) return NULL;
  if (TRACING) trace_note_access(&a);
  RESTARTING(code, gm_rma(&a));
  return none_or(code);
}

/* The same arguments, and what must live until the request completes. */
static PyObject *raw_rma_request(ARGS) {
  gm_access a;
  int64_t req = 0;
  int code;
  if (n != ACCESS_INTEGERS + 1)
    return PyErr_Format(PyExc_TypeError, "rma_request takes %d arguments", ACCESS_INTEGERS + 1);
  if (integers(ACCESS, args, ACCESS_INTEGERS, ACCESS_INTEGERS, (int64_t *)&a) < 0) return NULL;
  if (TRACING) trace_note_access(&a);
  RESTARTING(code, gm_rma_request(&a, &req));
  return started_or(code, req, args[ACCESS_INTEGERS]);
}

/* compare_and_swap(win, origin, compare, result, datatype, rank, displacement) */
static PyObject *raw_compare_and_swap(ARGS) {
  int64_t a[7];
  int code;
  if (integers("compare_and_swap window origin compare result datatype target_rank target", args, n, 7, a) < 0)
    return NULL;
  if (TRACING)
    trace_note_access(&(gm_access){.win = a[0], .origin = {a[1], 1, a[4]}, .rank = a[5], .target = {a[6], 1, a[4]}});
  RESTARTING(code, gm_compare_and_swap(a[0], a[1], a[2], a[3], a[4], a[5], a[6]));
  return none_or(code);
}

/* win_notified(win, slot, count, nanoseconds): reports whether notifications have come, and takes them. What it has taken
   goes back if the handler of a signal raises an exception: nobody would know of it. */
static PyObject *raw_win_notified(ARGS) {
  int64_t a[4], req = 0, came = 0;
  int code;
  if (integers("win_notified window slot count wait", args, n, 4, a) < 0) return NULL;
  if ((code = gm_win_notified(a[0], a[1], a[2], a[3], &req)) != 0) return raise_code(code);
  RESTARTING(code, gm_result(req, &came));
  if (code == RAISED) {
    gm_win_notified_drop(req);
    return NULL;
  }
  if (code) return raise_code(code);
  if (came && PyErr_CheckSignals() < 0) {
    gm_win_give_back(a[0], a[1], a[2]);
    return NULL;
  }
  return PyBool_FromLong(came);
}

/* DEFINE_WAIT(flush, …) defines raw_flush. */
DEFINE_WAIT(fence, 2, "window assertion", NOTE_WIN(a[0], TRACE_NO_PEER, a[1]), gm_fence(a[0], a[1], &pending))
DEFINE_WAIT(lock, 4, "window rank lock_type assertion", NOTE_WIN(a[0], a[1], a[2]),
            gm_lock(a[0], a[1], a[2], a[3], &pending))
DEFINE_WAIT(lock_all, 2, "window assertion", NOTE_WIN(a[0], TRACE_NO_PEER, -1), gm_lock_all(a[0], a[1], &pending))
DEFINE_WAIT(unlock, 2, "window rank", NOTE_WIN(a[0], a[1], -1), gm_unlock(a[0], a[1], &pending))
DEFINE_WAIT(unlock_all, 1, "", NOTE_WIN(a[0], TRACE_NO_PEER, -1), gm_unlock_all(a[0], &pending))
DEFINE_WAIT(flush, 2, "window rank", NOTE_WIN(a[0], a[1], -1), gm_flush(a[0], a[1], &pending))
DEFINE_WAIT(complete_at, 2, "", (void)0, gm_complete_at(a[0], a[1], &pending))
DEFINE_WAIT(flush_all, 1, "", NOTE_WIN(a[0], TRACE_NO_PEER, -1), gm_flush(a[0], -1, &pending))
DEFINE_WAIT(win_post, 3, "window group assertion", NOTE_WIN(a[0], TRACE_NO_PEER, -1), gm_win_post(a[0], a[1], a[2]))
DEFINE_WAIT(win_start, 3, "window group assertion", NOTE_WIN(a[0], TRACE_NO_PEER, -1),
            gm_win_start(a[0], a[1], a[2], &pending))
DEFINE_WAIT(win_complete, 1, "", NOTE_WIN(a[0], TRACE_NO_PEER, -1), gm_win_complete(a[0], &pending))
DEFINE_WAIT(win_wait, 1, "", NOTE_WIN(a[0], TRACE_NO_PEER, -1), gm_win_wait(a[0], &pending))
DEFINE_WAIT(win_sync, 1, "", NOTE_WIN(a[0], TRACE_NO_PEER, -1), gm_win_desc(a[0]) ? 0 : gm_flush(a[0], -1, &pending))

/* win_test(win) -> whether a Wait would return at once; then the exposure epoch has ended. */
static PyObject *raw_win_test(ARGS) {
  int64_t a[1], done = 0;
  if (integers("win_test", args, n, 1, a) < 0) return NULL;
  int code;
  WITHOUT_GIL(code = gm_win_test(a[0], &done));
  NOTE_WIN(a[0], TRACE_NO_PEER, done);
  if (code) return raise_code(code);
  return PyBool_FromLong(done);
}

/* win_memory(win, address, bytes) -> Memory that shows a part of the window, which is there; None if it is memory of
   this process's program, or of a process of the same job. */
static PyObject *raw_win_memory(ARGS) {
  int64_t a[4];
  if (integers("win_memory", args, n, 3, a) < 0) return NULL;
  int64_t held = gm_win_retain(a[0], a[1]);
  if (!held) Py_RETURN_NONE;
  PyObject *m = PyObject_CallFunction((PyObject *)MemoryType, "LLL", (long long)held, (long long)a[1], (long long)a[2]);
  if (!m) gm_release(held);
  return m;
}

/* win_describe(win) -> (address, bytes, disp_unit, flavor, rank, size) */
static PyObject *raw_win_describe(ARGS) {
  int64_t a[1], d[6];
  if (integers("win_describe", args, n, 1, a) < 0) return NULL;
  int code = gm_win_describe(a[0], d);
  if (code) return raise_code(code);
  return Py_BuildValue("LLLLLL", (long long)d[0], (long long)d[1], (long long)d[2], (long long)d[3], (long long)d[4],
                       (long long)d[5]);
}

/* win_check_free(win) raises if the window can't be freed now. */
static PyObject *raw_win_check_free(ARGS) {
  int64_t a[1];
  if (integers("win_check_free", args, n, 1, a) < 0) return NULL;
  return none_or(gm_win_check_free(a[0]));
}

/* win_address(win, rank, address, bytes) -> where these bytes of a rank are mapped here, 0 if they are not. */
static PyObject *raw_win_address(ARGS) {
  int64_t a[4], at = 0;
  if (integers("win_address", args, n, 4, a) < 0) return NULL;
  int code = gm_win_address(a[0], (int)a[1], a[2], a[3], &at);
  return code ? raise_code(code) : PyLong_FromLongLong(at);
}

PyMethodDef raw_win_methods[] = {F(win_create),
                                 F(win_describe),
                                 F(win_check_free),
                                 F(win_free),
                                 F(rma),
                                 F(rma_request),
                                 F(compare_and_swap),
                                 F(fence),
                                 F(lock),
                                 F(lock_all),
                                 F(unlock),
                                 F(unlock_all),
                                 F(flush),
                                 F(flush_all),
                                 {"flush_local", (PyCFunction)(void *)raw_flush, METH_FASTCALL, NULL},
                                 {"flush_local_all", (PyCFunction)(void *)raw_flush_all, METH_FASTCALL, NULL},
                                 F(complete_at),
                                 F(win_post),
                                 F(win_start),
                                 F(win_complete),
                                 F(win_wait),
                                 F(win_test),
                                 F(win_sync),
                                 F(win_memory),
                                 F(win_address),
                                 F(put_notify),
                                 F(win_notified),
                                 {0}};
