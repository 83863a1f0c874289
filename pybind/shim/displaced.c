/* Copies of instructions, for watch.c: a copy accesses what the instruction accesses, and goes on at a function which puts things back as they
   were. That is one signal less than with the trap flag, whose trap is the dearer of the two on virtual machines.

   A copy does what its original does, if that does not depend on where it is (movable_length); so there is one copy for all instructions of the
   same bytes. It leaves the stack as gm_watch_landing finds it: an address that the function replaces by that of the next instruction, 128 bytes
   (the red zone) below where the stack was.

   Copies are made with the GIL held, and are not changed: other threads may execute them at any time. */
#include "displaced.h"
#include "operand.h"

#include <string.h>
#include <sys/mman.h>

#if defined(__x86_64__)
enum { COPIES = 4096, MOST_BYTES = 15 };

typedef struct {
  uint8_t code[48], original[MOST_BYTES], length; /* 0 for a free copy */
} copy;

static copy *copies;
static uint32_t count;
static uintptr_t goes_on_at;

void displaced_setup(void (*after)(void)) {
  void *memory =
      mmap(NULL, COPIES * sizeof(copy), PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return; /* some systems allow no memory that is written and executed */
  copies = memory, goes_on_at = (uintptr_t)after;
}

/* lea -136(%rsp), %rsp; jmp *0(%rip), with the address behind it */
static const uint8_t go_on[] = {0x48, 0x8d, 0xa4, 0x24, 0x78, 0xff, 0xff, 0xff, 0xff, 0x25, 0, 0, 0, 0};

uintptr_t displaced(const uint8_t *instruction, int *length) {
  int n = copies ? movable_length(instruction) : 0;
  if (!n) return 0;
  uint64_t hash = 0;
  for (int i = 0; i < n; i++) hash = (hash ^ instruction[i]) * 0x100000001b3u;
  copy *c = &copies[hash % COPIES];
  while (c->length && (c->length != n || memcmp(c->original, instruction, (size_t)n) != 0))
    c = c + 1 < copies + COPIES ? c + 1 : copies;
  *length = n;
  if (c->length) return (uintptr_t)c->code;
  if (count == COPIES / 2) return 0;
  count++;
  memcpy(c->code, instruction, (size_t)n);
  memcpy(c->code + n, go_on, sizeof go_on);
  memcpy(c->code + n + sizeof go_on, &goes_on_at, sizeof goes_on_at);
  memcpy(c->original, instruction, (size_t)n);
  c->length = (uint8_t)n;
  return (uintptr_t)c->code;
}
#endif
