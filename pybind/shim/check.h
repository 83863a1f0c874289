/* Writing events for mpiexec --check: see gocore/check/events/doc.go, which has the protocol. agree.go compares the
   layout with Go's. */
#ifndef CHECK_H
#define CHECK_H

#include "shim.h"

/* events.head */
typedef struct {
  uint64_t magic;
  uint32_t version, pad0;
  uint64_t capacity, pad1[5];
  uint64_t written;
  uint32_t lock, pad2;
  uint64_t pad3[6];
  uint64_t read, pad4[7];
} check_head;

enum {
  CHECK_DATA_AT = 4096,
  CHECK_HEAD_BYTES = 24,
  CHECK_MOST_WORDS = 512,
  CHECK_OP = 7,
  CHECK_OP_FAILED = 9,
  CHECK_SYNC = 10,
  CHECK_ACCESS = 17,
  CHECK_END = 19,
  CHECK_GONE = 23,
  CHECK_LIMIT = 29
};

extern PyMethodDef check_methods[], check_site_methods[];

/* Writes an event; nothing if the job is not checked. */
void check_write(uint32_t kind, uint32_t site, const int64_t *words, uint64_t n);

/* The number of the line of the program that makes a call, a CALL_ number or one of these; 0 if it has none yet, or if the caller is not the
   program itself. */
enum { CHECK_LOAD = CALL_COUNT, CHECK_STORE };
uint32_t check_here(int call);

/* hot_checked.c: the number of a call that stands before a method of Win, -1 if there is none of that name. */
extern PyMethodDef checked_methods[];
int checked_call(const char *name);

/* The number of the next operation or request. */
int64_t check_next(void);

/* Tells the checker that nobody uses this memory any more. */
void check_gone(int64_t address, int64_t bytes);

#endif
