/* Instructions that are executed elsewhere: see displaced.c. */
#ifndef DISPLACED_H
#define DISPLACED_H

#include <stdint.h>

/* Has copies of instructions go on at a function. Without it, or if the system does not allow them, there are none. */
void displaced_setup(void (*after)(void));

/* Returns where a copy of an instruction is executed, and its length; 0 if it has to be executed where it is. With the GIL held. */
uintptr_t displaced(const uint8_t *instruction, int *length);

#endif
