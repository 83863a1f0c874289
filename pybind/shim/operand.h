/* What an instruction accesses in memory. */
#ifndef OPERAND_H
#define OPERAND_H

#include <stdint.h>

typedef struct {
  uintptr_t at;
  uint64_t bytes;
  int repeated, moves,
      length; /* of a REP instruction, which has bytes to do: bytes of an element, whether it is MOVS or STOS, its length */
  uint64_t count, stride; /* of a gather or scatter: so many runs of bytes, so far apart; else count is 1 */
} operand_bytes;

/* Describes the memory operand of the instruction in a signal's context (ucontext_t) that has faulted at address. What it can't decode is one
   byte at that address. */
operand_bytes operand_of(const void *context, uintptr_t address);

/* Returns the length of an instruction that does the same at any other address, and goes on behind itself; 0 if it is not known to be one. */
int movable_length(const uint8_t *start);

/* Finds out where the processor saves registers. */
void operand_setup(void);

#endif
