/* Pages whose accesses fault, for watch.c: see pages.c. Only for x86-64. */
#ifndef PAGES_H
#define PAGES_H

#include <stdint.h>

enum { PAGE = 4096, EAGER = 4 };
enum { NOT_WATCHED, PROTECTED, OPEN }; /* states of a page */

typedef struct {
  uint64_t number; /* 0 for a free entry */
  uint32_t users;
  uint8_t state, told; /* told: the checker may know of accesses */
  uint8_t eager;       /* how often an access has opened the page while nobody used it; EAGER: no more */
  char *view;          /* the page, mapped again; NULL: it is not */
} page;

/* Returns -1 with errno set if there is no memory for the table. Without it no page is watched. */
int pages_setup(void);
int pages_are_set_up(void);

/* Returns the page with a number, NULL if it never had a user. */
page *page_numbered(uint64_t number);

void page_open(page *p);             /* if it is protected */
void page_close(page *p);            /* if it is open and has users */
void page_open_until_rearm(page *p); /* if it is protected */
void page_open_unused(page *p, int program);

/* Protects again what was opened until then, unless a system call uses what is open: between pages_hold and pages_release. */
void pages_rearm(void);
void pages_hold(void);
void pages_release(void);

/* The pages of n bytes, at least 1, have one user more (by 1) or less (by -1). */
void pages_change(uint64_t at, uint64_t n, int by);

/* Opens all, or protects again what has users. Meanwhile users are counted. */
void pages_stop(void);
void pages_go_on(void);
int pages_are_stopped(void);

/* Returns where the runtime accesses the page of an array without opening it; NULL if there is no such place. */
char *page_view(uintptr_t at);

/* A page without users stays protected after all if it has a view, until it is accessed: the last user goes. */
int page_lingers(page *p);

/* Its memory is freed, and may become another mapping. */
void page_forget(page *p);

#endif
