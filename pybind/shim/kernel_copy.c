/* The path copy of windows, for few bytes: the kernel copies between two processes' memory, and the target's process
   takes no part.

   Go has the other half (gocore/fabric/shm, and rma, which decides that a target is reached in this way): the probe
   whether the kernel allows it, long copies, many runs in one call, and the errors. Only when rma has found that it
   works, and that the target has left its last fence, does it set GM_TARGET_COPY, with the target's process and where
   its part lies there. This is a shortcut then: a Put of 8 bytes and a Flush take 1.8 microseconds by it where they
   take 2.4 by Go. Anything that is not as it should be is left to Go, which does it again and says why.

   A system call costs more than all else of a short put. So those that follow one another are gathered in bundles, and
   written by one call. When, and who may do what to a bundle, is in gocore/rma/bundle.go.

   Only hot_win.c may call it, within a passive-target epoch and with bounds checked. The GIL may be held: so few bytes
   take the kernel some microseconds. */
#include "shim.h"
#include "_cgo_export.h"

#include <sched.h>
#include <sys/uio.h>

#define SHORT_COPY (16 << 10)

_Static_assert(sizeof(struct iovec) == sizeof(gm_run), "the kernel reads runs");

static void lock_bundle(gm_bundle *b) {
  for (uint32_t spins = 1, none = 0;
       !__atomic_compare_exchange_n(&b->lock, &none, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED); none = 0)
    if (spins++ % 64 == 0) sched_yield();
}

static void unlock_bundle(gm_bundle *b) { __atomic_store_n(&b->lock, 0, __ATOMIC_RELEASE); }

static int ended(const gm_target *t) { return __atomic_load_n(t->ended, __ATOMIC_ACQUIRE) != 0; }

/* Writes what is in a bundle, under its lock. Returns 0 if Go is to go on with it. */
static int write_bundle(gm_desc *d, const gm_target *t, gm_bundle *b) {
  if (b->used == 0) return 1;
  if (b->written || ended(t)) return 0;
  struct iovec here = {b->data, b->bytes};
  ssize_t n = process_vm_writev((pid_t)t->pid, &here, 1, (struct iovec *)b->runs, b->used, 0);
  if (ended(t)) return 0; /* it may have been another process's memory */
  if (n != b->bytes) {
    if (n > 0) b->written = (uint32_t)n;
    return 0;
  }
  b->bytes = 0;
  __atomic_store_n(&b->used, 0, __ATOMIC_RELAXED);
  __atomic_fetch_sub(&d->bundles, 1, __ATOMIC_SEQ_CST);
  return 1;
}

int write_bundled(gm_desc *d, const gm_target *t) {
  gm_bundle *b = __atomic_load_n(&t->bundle, __ATOMIC_ACQUIRE);
  if (!b || __atomic_load_n(&b->used, __ATOMIC_ACQUIRE) == 0) return 1;
  lock_bundle(b);
  int written = write_bundle(d, t, b);
  unlock_bundle(b);
  return written;
}

/* The place in a bundle for n bytes at an address of the target, NULL if there is none. What lies in the last run, or
   follows it, becomes a part of it: *grows is by how much. Else *fresh is set. */
static void *place_for(gm_bundle *b, uint64_t at, int64_t n, int64_t *grows, int *fresh) {
  uint8_t *end = b->data + b->bytes;
  gm_run *last = b->used ? &b->runs[b->used - 1] : NULL;
  *grows = *fresh = 0;
  if (last && at >= last->at && at - last->at <= (uint64_t)last->bytes) {
    int64_t into = (int64_t)(at - last->at);
    if (into + n <= last->bytes) return end - last->bytes + into;
    if (into == last->bytes && b->bytes + n <= GM_BUNDLE_BYTES) return *grows = n, end;
  }
  if (b->used == GM_BUNDLE_RUNS || b->bytes + n > GM_BUNDLE_BYTES) return NULL;
  *fresh = 1;
  return end;
}

/* Adds a put to the bundle of a target. GM_DONE; 0 if it is to be written at once; or the code of a fault. */
static int bundle_put(gm_desc *d, gm_target *t, const void *p, int64_t at, int64_t n) {
  if (n == 0 || n > GM_BUNDLED_PUT || !(t->flags & GM_TARGET_COPY) || ended(t) ||
      __atomic_load_n(&t->turn, __ATOMIC_RELAXED) != __atomic_load_n(&d->turn, __ATOMIC_RELAXED))
    return 0;
  gm_bundle *b = __atomic_load_n(&t->bundle, __ATOMIC_ACQUIRE);
  if (!b && !(b = gm_win_bundle(d->handle, t - d->target))) return 0;
  lock_bundle(b);
  int64_t grows;
  int fresh, first = 0, done = GM_DONE;
  void *to = b->written ? NULL : place_for(b, t->remote + at, n, &grows, &fresh);
  if (!to && write_bundle(d, t, b)) to = place_for(b, t->remote + at, n, &grows, &fresh);
  if (!to) {
    done = 0;
  } else if (guarded_copy(to, p, n)) {
    done = -1;
  } else if (fresh) {
    first = b->used == 0;
    b->runs[b->used] = (gm_run){t->remote + at, n};
    b->bytes += (uint32_t)n;
    if (first) {
      __atomic_store_n(&b->number, __atomic_add_fetch(&d->begun, 1, __ATOMIC_SEQ_CST), __ATOMIC_RELAXED);
      __atomic_fetch_add(&d->bundles, 1, __ATOMIC_SEQ_CST);
    }
    __atomic_store_n(&b->used, b->used + 1, __ATOMIC_RELEASE);
  } else if (grows) {
    b->runs[b->used - 1].bytes += grows;
    b->bytes += (uint32_t)grows;
  }
  unlock_bundle(b);
  if (first && !__atomic_load_n(&d->watched, __ATOMIC_SEQ_CST)) gm_win_bundle(d->handle, t - d->target);
  return done < 0 ? gm_faulted(guard_address()) : done;
}

static int copy(const gm_target *t, int put, void *p, int64_t at, int64_t n) {
  if (n > SHORT_COPY || !(t->flags & GM_TARGET_COPY) || ended(t)) return 0;
  struct iovec here = {p, n}, there = {(void *)(uintptr_t)(t->remote + at), n};
  pid_t pid = (pid_t)t->pid;
  return n == (put ? process_vm_writev(pid, &here, 1, &there, 1, 0) : process_vm_readv(pid, &here, 1, &there, 1, 0));
}

int kernel_copy(gm_desc *d, gm_target *t, int put, void *p, int64_t at, int64_t n) {
  return write_bundled(d, t) && copy(t, put, p, at, n) ? GM_DONE : 0;
}

int kernel_put(gm_desc *d, gm_target *t, void *p, int64_t at, int64_t n) {
  uint32_t turn = __atomic_load_n(&d->turn, __ATOMIC_RELAXED);
  int done = bundle_put(d, t, p, at, n);
  if (done) return done;
  done = kernel_copy(d, t, 1, p, at, n);
  if (done == GM_DONE && n <= GM_BUNDLED_PUT) __atomic_store_n(&t->turn, turn, __ATOMIC_RELAXED);
  return done;
}

int complete_bundled(gm_desc *d, int64_t rank) {
  int all = 1;
  __atomic_fetch_add(&d->turn, 1, __ATOMIC_RELAXED);
  if (__atomic_load_n(&d->bundles, __ATOMIC_SEQ_CST) != 0) {
    if (rank >= 0)
      all = write_bundled(d, &d->target[rank]);
    else
      for (rank = 0; rank < d->size; rank++) all &= write_bundled(d, &d->target[rank]);
  }
  return all && !bundle_failed(d); /* in this order: what another thread could not write is told before it is gone */
}
