/* What hot_win.c, hot_epoch.c and hot_checked.c have in common. */
#ifndef HOT_WIN_H
#define HOT_WIN_H

#include "raw.h"
#include "trace.h"

/* The window's descriptor, NULL if the handle names no window. */
gm_desc *win_descriptor(PyObject *self);

/* Where at the target: a displacement; a count and type, if given, must say the
   same number of bytes as the origin. Returns -1 for anything unusual. What is in
   a list may go when a displacement's __index__ runs: it is held meanwhile. */
int target_disp(PyObject *o, int64_t bytes, int64_t *disp);

/* Checks the bounds of a one-sided call. No other place in C does; what it refuses, the general call explains.
   Returns the target, if there is such a rank and it has n bytes at the displacement, and how many bytes into its
   part these are; NULL otherwise. Whether an epoch allows the access is asked with accessible or locked. */
gm_target *reach(gm_desc *d, int64_t rank, int64_t disp, int64_t n, int64_t *at);

/* Any epoch. */
static inline int accessible(const gm_desc *d, const gm_target *t) { return (d->open | t->open) != 0; }

/* A passive-target epoch. */
static inline int locked(const gm_desc *d, const gm_target *t) {
  return d->open == GM_OPEN_LOCK_ALL || (t->open & GM_TARGET_LOCKED);
}

#endif
