/* The path copy of windows, for few bytes: the kernel copies between two processes' memory, and the target's process
   takes no part.

   Go has the other half (gocore/fabric/shm, and rma, which decides that a target is reached in this way): the probe
   whether the kernel allows it, long copies, many runs in one call, and the errors. Only when rma has found that it
   works, and that the target has left its last fence, does it set GM_TARGET_COPY, with the target's process and where
   its part lies there. This is a shortcut then: a Put of 8 bytes and a Flush take 1.8 microseconds by it where they
   take 2.4 by Go. Anything that is not as it should be is left to Go, which does it again and says why.

   Only hot_win.c may call it, within a passive-target epoch and with bounds checked. The GIL stays held: so few bytes
   take the kernel some microseconds. */
#include "shim.h"

#include <sys/uio.h>

#define SHORT_COPY (16 << 10)

int kernel_copy(const gm_target *t, int put, void *p, int64_t at, int64_t n) {
  if (n > SHORT_COPY || !(t->flags & GM_TARGET_COPY) || __atomic_load_n(t->ended, __ATOMIC_ACQUIRE)) return 0;
  struct iovec here = {p, n}, there = {(void *)(uintptr_t)(t->remote + at), n};
  pid_t pid = (pid_t)t->pid;
  return n == (put ? process_vm_writev(pid, &here, 1, &there, 1, 0) : process_vm_readv(pid, &here, 1, &there, 1, 0));
}
