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
void watch_call_ends(const void *p, uint64_t n);

/* Memory of an array is freed, or moved. */
void watch_freed(const void *p, size_t n);

#endif
