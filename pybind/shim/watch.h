/* Watching loads and stores of the program, for mpiexec --check: see watch.c. */
#ifndef WATCH_H
#define WATCH_H

#include "shim.h"

#include <signal.h>

extern PyMethodDef watch_methods[];

/* Handles a fault of watched memory; returns 0 if it is something else. in_object: the instruction is one of this object. */
int watch_fault(siginfo_t *info, void *context, int in_object);

/* interpose.c: other libraries' system calls on watched memory are told of. */
void watch_calls(void);

/* A system call on n bytes begins, which returns whether they are watched; then it tells of its access, and ends. */
int watch_call_begins(const void *p, uint64_t n);
void watch_call_tells(const void *p, uint64_t n, int write);
void watch_call_ends(void);

/* The pages of n bytes are watched, or once less. watch_is_own reports whether these bytes can be: they lie in the arena, whose pages have
   nothing else on them. */
int watch_begin(uint64_t p, uint64_t n);
void watch_end(uint64_t p, uint64_t n);
int watch_is_own(uint64_t p, uint64_t n);

/* Returns where the runtime itself reads and writes n bytes of an array that lie on one page, watched or not; NULL if there is no such
   place. */
char *watch_view(const void *p, uint64_t n);

/* Protects again what has been opened for the runtime. */
void watch_ends_call(void);

int watch_is_on(void);
int watch_is_stopped(void); /* for now, or not possible here: nothing is watched */

/* Memory of an array is freed, or moved. */
void watch_freed(const void *p, size_t n);

#endif
