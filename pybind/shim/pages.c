/* The table of pages whose accesses fault, their protection, and second mappings of them.

   The table only grows, up to three quarters: further memory is not watched. It is read without a lock. A page's state and its
   protection are changed together, under a spin lock (lock_pages), by a thread with the GIL or by one that handles a fault: if they
   differed, a thread would fault for ever on a page that is said to be open. Who has the lock accesses no watched memory.

   A process may have only so many mappings (vm.max_map_count), and a page that is opened among protected ones makes two
   more. Where there are too many, pages around it are opened, too, or are not watched. */
#define _GNU_SOURCE
#include "raw.h"
#include "pages.h"
#include "_cgo_export.h"

#include <errno.h>
#include <sched.h>
#include <sys/mman.h>

#if defined(__x86_64__)
enum { TABLE = 1 << 20, MOST_PAGES = TABLE / 4 * 3, OPENED = 1 << 14, MOST_VIEWS = 4096 };

static page *table;
static uint32_t count;
static int stopped;
static uint32_t lock;

/* Pages to protect again. Changed under the lock. */
static page *opened[OPENED];
static uint32_t opened_count;
static uint32_t held; /* how many system calls use what is open */

int pages_setup(void) {
  void *memory =
      mmap(NULL, TABLE * sizeof(page), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return -1;
  __atomic_store_n(&table, memory, __ATOMIC_SEQ_CST);
  return 0;
}

int pages_are_set_up(void) { return table != NULL; }

/* A forked child has no other threads, one of which may have had the lock. */
static void lock_pages(void) {
  while (!gm_forked && __atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE)) sched_yield();
}

static void unlock_pages(void) { __atomic_store_n(&lock, 0, __ATOMIC_RELEASE); }

/* add: the lock is held. */
static page *find(uint64_t number, int add) {
  for (uint64_t i = number * 0x9e3779b97f4a7c15u >> 44;; i = (i + 1) & (TABLE - 1)) {
    uint64_t there = __atomic_load_n(&table[i].number, __ATOMIC_ACQUIRE);
    if (there == number) return &table[i];
    if (there == 0) {
      if (!add || count == MOST_PAGES) return NULL;
      count++;
      __atomic_store_n(&table[i].number, number, __ATOMIC_RELEASE);
      return &table[i];
    }
  }
}

page *page_numbered(uint64_t number) { return table ? find(number, 0) : NULL; }

/* The functions named _locked are called with the lock held. */

static void set_locked(page *p, int state) { __atomic_store_n(&p->state, (uint8_t)state, __ATOMIC_SEQ_CST); }

static int protect_locked(uint64_t first, uint64_t last, int state) {
  return mprotect((void *)(first * PAGE), (last - first + 1) * PAGE,
                  state == PROTECTED ? PROT_NONE : PROT_READ | PROT_WRITE);
}

static void note_locked(page *p) {
  if (opened_count < OPENED) opened[opened_count++] = p;
}

/* Opens a page and those around it that are protected. note: all but that page are to be protected again. */
static void open_run_locked(page *p, int note) {
  uint64_t first = p->number, last = p->number;
  for (page *next; (next = find(first - 1, 0)) && next->state == PROTECTED; first--) continue;
  for (page *next; (next = find(last + 1, 0)) && next->state == PROTECTED; last++) continue;
  for (uint64_t number = first; number <= last; number++) {
    page *next = find(number, 0);
    set_locked(next, OPEN);
    if (note && next != p) note_locked(next);
  }
  protect_locked(first, last, OPEN);
}

static void open_locked(page *p) {
  set_locked(p, OPEN);
  if (protect_locked(p->number, p->number, OPEN) < 0) open_run_locked(p, 1);
}

static void close_locked(page *p) {
  if (!p->users || p->state != OPEN || stopped) return;
  set_locked(p, PROTECTED);
  if (protect_locked(p->number, p->number, PROTECTED) < 0) set_locked(p, OPEN);
}

void page_open(page *p) {
  lock_pages();
  if (p->state == PROTECTED) open_locked(p);
  unlock_pages();
}

void page_close(page *p) {
  lock_pages();
  close_locked(p);
  unlock_pages();
}

void page_open_until_rearm(page *p) {
  lock_pages();
  if (p->state == PROTECTED) {
    note_locked(p);
    open_locked(p);
  }
  unlock_pages();
}

void page_open_unused(page *p, int program) {
  lock_pages();
  if (p->state == PROTECTED && !p->users) {
    if (p->eager < EAGER) p->eager = program ? EAGER : p->eager + 1;
    open_locked(p);
  }
  unlock_pages();
}

void pages_rearm(void) {
  if (!__atomic_load_n(&opened_count, __ATOMIC_SEQ_CST) || __atomic_load_n(&held, __ATOMIC_SEQ_CST)) return;
  lock_pages();
  for (uint32_t i = 0; i < opened_count; i++) close_locked(opened[i]);
  __atomic_store_n(&opened_count, 0, __ATOMIC_SEQ_CST);
  unlock_pages();
}

void pages_hold(void) { __atomic_fetch_add(&held, 1, __ATOMIC_SEQ_CST); }

void pages_release(void) {
  if (__atomic_fetch_sub(&held, 1, __ATOMIC_SEQ_CST) == 1) pages_rearm();
}

/* Has a run of pages protected or opened, whose states are that already. */
static void protect_run_locked(uint64_t first, uint64_t last, int state) {
  if (protect_locked(first, last, state) == 0) return;
  if (state == PROTECTED) {
    for (uint64_t number = first; number <= last; number++) set_locked(find(number, 0), OPEN);
    protect_locked(first, last, OPEN); /* a part may be protected */
  } else {
    for (uint64_t number = first; number <= last; number++) open_locked(find(number, 0));
  }
}

void pages_change(uint64_t at, uint64_t n, int by) {
  uint64_t first = at / PAGE, last = (at + n - 1) / PAGE, from = first;
  int state = by > 0 ? PROTECTED : OPEN;
  lock_pages();
  /* runs of pages that change their protection together */
  for (uint64_t number = first; number <= last + 1; number++) {
    int changes = 0;
    page *p = number <= last ? find(number, by > 0) : NULL;
    if (p) {
      uint32_t users = p->users;
      if (by > 0 || users) p->users = users + (uint32_t)by;
      p->told = 1;
      if (p->state == NOT_WATCHED) set_locked(p, OPEN);
      changes = by > 0 ? p->state == OPEN && !stopped : users == 1 && p->state == PROTECTED;
      if (changes) set_locked(p, state);
    }
    if (changes) continue;
    if (number > from) protect_run_locked(from, number - 1, state);
    from = number + 1;
  }
  unlock_pages();
}

void pages_stop(void) {
  lock_pages();
  stopped = 1;
  for (uint64_t i = 0; i < TABLE; i++)
    if (table[i].state == PROTECTED) open_run_locked(&table[i], 0);
  unlock_pages();
}

static int to_close(const page *p) { return p && p->users && p->state == OPEN; }

/* Protects a page and those around it, which may be more than there can be mappings. */
static void close_run_locked(page *p) {
  if (!to_close(p)) return;
  uint64_t first = p->number, last = p->number;
  while (to_close(find(first - 1, 0))) first--;
  while (to_close(find(last + 1, 0))) last++;
  for (uint64_t number = first; number <= last; number++) set_locked(find(number, 0), PROTECTED);
  protect_run_locked(first, last, PROTECTED);
}

void pages_go_on(void) {
  lock_pages();
  stopped = 0;
  for (uint64_t i = 0; i < TABLE; i++) close_run_locked(&table[i]);
  unlock_pages();
}

int pages_are_stopped(void) { return stopped; }

static uint32_t views;

char *page_view(uintptr_t at) {
  page *p = find(at / PAGE, 0);
  if (p && p->view) return p->view + at % PAGE;
  int file;
  int64_t offset = views < MOST_VIEWS ? gm_array_place((void *)(at & ~(uintptr_t)(PAGE - 1)), PAGE, &file) : -1;
  if (offset < 0) return NULL;
  lock_pages();
  p = find(at / PAGE, 1);
  unlock_pages();
  void *view = p ? mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, offset) : MAP_FAILED;
  if (view == MAP_FAILED) return NULL;
  views++;
  p->view = view;
  return p->view + at % PAGE;
}

int page_lingers(page *p) {
  lock_pages();
  int lingers = p->users == 1 && p->view && p->eager < EAGER && p->state == PROTECTED;
  if (lingers) p->users = 0;
  unlock_pages();
  return lingers;
}

void page_forget(page *p) {
  if (!p->users) page_open(p);
  p->eager = 0;
  if (!p->view) return;
  munmap(p->view, PAGE);
  p->view = NULL;
  views--;
}
#endif
