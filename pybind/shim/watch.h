/* Watching loads and stores of the program, for mpiexec --check: see watch.c. */
#ifndef WATCH_H
#define WATCH_H

#include "shim.h"

#include <signal.h>

extern PyMethodDef watch_methods[];

/* Handles a fault of watched memory; returns 0 if it is something else. in_object: the instruction is one of this object. */
int watch_fault(siginfo_t *info, void *context, int in_object);

/* Memory of an array is freed, or moved. */
void watch_freed(const void *p, size_t n);

#endif
