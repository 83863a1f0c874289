/* A software double of libibverbs for one process: see double.c. */
#ifndef GORMAPY_IBVERBS_DOUBLE_H
#define GORMAPY_IBVERBS_DOUBLE_H
#include <stdint.h>

void *double_find(void *handle, const char *name);

/* What can be asked for. */
enum {
  DOUBLE_DOORBELLS,  /* calls of ibv_post_send */
  DOUBLE_WRITES,     /* work requests, by kind */
  DOUBLE_READS,
  DOUBLE_SENDS,
  DOUBLE_ATOMICS,
  DOUBLE_SIGNALED,   /* work requests with a completion */
  DOUBLE_EMPTY,      /* writes of nothing */
  DOUBLE_POLLS,      /* calls of ibv_poll_cq */
  DOUBLE_REGIONS,    /* that exist */
  DOUBLE_QPS,
  DOUBLE_OBJECTS,    /* all that exist */
  DOUBLE_COUNTS
};
int64_t double_count(int what);

/* Forgets counts and faults. */
void double_reset(void);

/* The faults. Each is for what comes from now on; 0 ends it. */
enum {
  DOUBLE_NO_DEVICES,      /* ibv_get_device_list: this errno, or an empty list for -1 */
  DOUBLE_NO_ATOMIC_KEYS,  /* registration with IBV_ACCESS_REMOTE_ATOMIC: this errno */
  DOUBLE_NO_REGIONS,      /* any registration: this errno */
  DOUBLE_POST_ERRNO,      /* ibv_post_send refuses the request that POST_AFTER says with it, once */
  DOUBLE_POST_AFTER,
  DOUBLE_WC_STATUS,       /* the work request that WC_AFTER says ends with this status, once */
  DOUBLE_WC_AFTER,
  DOUBLE_HOLD,            /* work requests wait */
  DOUBLE_LAZY,            /* work is done by a thread, at most so many requests of a queue at a time */
  DOUBLE_DOWN,            /* no port is active */
  DOUBLE_MAX_INLINE,      /* a queue pair may have so many bytes inline; -1: none */
  DOUBLE_MAX_MSG,         /* bytes of one message */
  DOUBLE_NO_ATOMICS,      /* the device says that it has none */
  DOUBLE_ODP,             /* the device has on-demand paging, and registers nothing else */
  DOUBLE_NO_FLUSH,        /* what waits when a queue pair fails never completes */
  DOUBLE_FAULTS
};
void double_fault(int which, int value);

/* The process of a queue pair is gone: nobody answers its peer. */
void double_kill(uint32_t qp_num);

#endif
