/* Watching loads and stores of the program. The pages of buffers of pending operations and of windows are protected, so that each access
   faults (pages.c). What happens then:

   1. on_fault (guard.c) asks watch_fault. It finds the page in the table. If the instruction is of the runtime (of this object, of a guarded
      copy, of a thread that Python does not know), it opens the page and lets the instruction go on; rearm protects such pages again when the call
      of MPI that is in progress returns.
   2. Otherwise it stores what the instruction accesses (operand.c) and has the thread go on at gm_watch_landing, on its own stack. So
      nothing below runs in a signal handler, except for 5.
   3. gm_watch_landing saves all registers, calls gm_watch_hook, and restores them. The hook takes the GIL (the thread may have it), tells the
      checker of the line, the bytes and the direction, opens the pages, and says how to go on.
      REP MOVS and STOS are executed by the hook itself.
   4. A copy of the instruction (displaced.c) is executed, and goes on at gm_watch_after: this saves the registers likewise, and gm_watch_close
      protects the pages again. So every instruction that accesses a watched page is seen, with the exact bytes.
   5. An instruction that has no copy is stepped: it is executed with the trap flag set, and on_trap protects the pages.
      Once so many accesses have been told of that no more are, nothing is protected.

   The runtime can read and write small buffers without opening their page (watch_view): pages of NumPy's arrays are mapped a second time for that.
   When an operation on such a buffer is complete its page stays as it is, since mprotect is slow: the next operation then finds it
   protected. If the program accesses the page before, or the runtime does so several times, it is opened, and from then on with each
   completion (eager).

   Python may run code of the program in the hook: signal handlers, and finalizers. What this accesses is told of likewise, the hook is called
   in the hook, but for NESTED times.

   A system call on protected memory fails with EFAULT: those of other libraries are in interpose.c, and package mpiio opens what it
   reads and writes. On processors other than x86-64 nothing is
   watched (watch_start returns False). */
#define _GNU_SOURCE
#include "raw.h"
#include "watch.h"
#include "check.h"
#include "displaced.h"
#include "operand.h"
#include "pages.h"
#include "pending.h"
#include "_cgo_export.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>

enum { STEPPED = 16, NESTED = 4 };

static PyObject *hook, *gone;
static struct sigaction trap_before;
uint64_t gm_watch_mask __attribute__((visibility("hidden")));

extern __thread void *gm_guard_sp __attribute__((visibility("hidden"), tls_model("initial-exec")));

static __thread struct {
  uintptr_t pc, next, fault; /* next: behind the instruction of which a copy is executed */
  operand_bytes o;
  int write, inside, opened, stepping, first, pages; /* inside: so many hooks; opened: by the last of them */
  page *page[STEPPED];
} mine __attribute__((tls_model("initial-exec")));

/* On the thread's stack is an address, 128 bytes (the red zone) below where the stack was: that of the instruction that has faulted, for
   gm_watch_landing, and for gm_watch_after one that gm_watch_close replaces. If the function returns 1, the thread goes on there with the trap
   flag set. */
extern void gm_watch_landing(void), gm_watch_after(void);
#define SAVING_REGISTERS(name, function)                                                           \
  __asm__(".text\n.hidden " name "\n.globl " name "\n.type " name ", @function\n" name             \
          ":\n"                                                                                    \
          "pushfq\n"                                                                               \
          "push %rax\npush %rcx\npush %rdx\npush %rbx\npush %rbp\npush %rsi\npush %rdi\n"          \
          "push %r8\npush %r9\npush %r10\npush %r11\npush %r12\npush %r13\npush %r14\npush %r15\n" \
          "mov %rsp, %rbp\n"                                                                       \
          "sub $4096, %rsp\nand $-64, %rsp\n"                                                      \
          "xor %eax, %eax\n"                                                                       \
          "mov %rax, 512(%rsp)\nmov %rax, 520(%rsp)\nmov %rax, 528(%rsp)\nmov %rax, 536(%rsp)\n"   \
          "mov %rax, 544(%rsp)\nmov %rax, 552(%rsp)\nmov %rax, 560(%rsp)\nmov %rax, 568(%rsp)\n"   \
          "mov gm_watch_mask(%rip), %eax\nxor %edx, %edx\n"                                        \
          "xsave64 (%rsp)\n"                                                                       \
          "cld\n"                                                                                  \
          "mov %rbp, %rdi\n"                                                                       \
          "call " function                                                                         \
          "\n"                                                                                     \
          "mov %eax, %ebx\n"                                                                       \
          "mov gm_watch_mask(%rip), %eax\nxor %edx, %edx\n"                                        \
          "xrstor64 (%rsp)\n"                                                                      \
          "mov %rbp, %rsp\n"                                                                       \
          "test %ebx, %ebx\njz 1f\n"                                                               \
          "orq $0x100, 120(%rsp)\n" /* the trap flag */                                            \
          "1: pop %r15\npop %r14\npop %r13\npop %r12\npop %r11\npop %r10\npop %r9\npop %r8\n"      \
          "pop %rdi\npop %rsi\npop %rbp\npop %rbx\npop %rdx\npop %rcx\npop %rax\n"                 \
          "popfq\n"                                                                                \
          "ret $128\n"                                                                             \
          ".size " name ", . - " name "\n")
SAVING_REGISTERS("gm_watch_landing", "gm_watch_hook");
SAVING_REGISTERS("gm_watch_after", "gm_watch_close");

int watch_fault(siginfo_t *info, void *context, int in_object) {
  uintptr_t address = (uintptr_t)info->si_addr;
  page *p = info->si_code == SEGV_ACCERR ? page_numbered(address / PAGE) : NULL;
  if (!p || p->state == NOT_WATCHED) return 0;
  if (p->state == OPEN) return 1; /* another thread has opened it */
  int program = !(in_object || gm_guard_sp || mine.inside == NESTED || gm_forked) && PyGILState_GetThisThreadState();
  if (!p->users) {
    page_open_unused(p, program);
    return 1;
  }
  if (!program) {
    mine.opened |= mine.inside == NESTED;
    page_open_until_rearm(p);
    return 1;
  }
  ucontext_t *c = context;
  if (mine.stepping) { /* the other page of an operand */
    if (mine.pages < STEPPED) {
      mine.page[mine.pages++] = p;
      page_open(p);
    } else {
      page_open_until_rearm(p);
    }
    return 1;
  }
  mine.o = operand_of(c, address), mine.pc = (uintptr_t)c->uc_mcontext.gregs[REG_RIP], mine.fault = address;
  mine.write = c->uc_mcontext.gregs[REG_ERR] >> 1 & 1;
  uintptr_t sp = (uintptr_t)c->uc_mcontext.gregs[REG_RSP] - 128 - 8;
  memcpy((void *)sp, &mine.pc, 8);
  c->uc_mcontext.gregs[REG_RSP] = (greg_t)sp;
  c->uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)gm_watch_landing;
  return 1;
}

/* An exception of a signal handler of the program, which has run while the hook did. */
static PyObject *waiting;

/* Raises it in the program. */
static int raise_waiting(void *unused) {
  PyObject *exception = waiting;
  waiting = NULL;
  if (!exception) return 0;
  PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
  Py_DECREF(exception);
  return -1;
}

/* Has an exception of the hook raised when the program's instruction is over: a signal handler has raised it, which runs in the main thread. The
   hook itself has none to raise, unless the program has left no room for its frames: that is not the program's affair. */
static void raise_later(void) {
  if (PyErr_ExceptionMatches(PyExc_RecursionError) || PyErr_ExceptionMatches(PyExc_MemoryError)) {
    PyErr_Clear();
    return;
  }
  if (syscall(SYS_gettid) != getpid()) {
    PyErr_WriteUnraisable(hook);
    return;
  }
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (traceback) PyException_SetTraceback(value, traceback);
  Py_XDECREF(type);
  Py_XDECREF(traceback);
  PyObject *before = waiting;
  waiting = value;
  Py_XDECREF(before);
  if (!before) Py_AddPendingCall(raise_waiting, NULL);
}

/* An exception that waits until the access is told of. */
typedef struct {
  PyObject *type, *value, *traceback;
} exception;

/* Keeps the exception that is set, if any, in the place of an earlier one. */
static void keep(exception *e) {
  if (!PyErr_Occurred()) return;
  Py_XDECREF(e->type);
  Py_XDECREF(e->value);
  Py_XDECREF(e->traceback);
  PyErr_Fetch(&e->type, &e->value, &e->traceback);
}

static void raise_kept(exception *e) {
  if (!e->type) return;
  PyErr_Restore(e->type, e->value, e->traceback);
  raise_later();
}

/* Has Python give a line a number. A signal handler that raises an exception ends the hook: it is called again. */
static uint32_t number_of_line(uintptr_t at, int write) {
  exception e = {0};
  uint32_t site = 0;
  for (int times = 0; !site && times < 3; times++) {
    PyObject *answer = PyObject_CallFunction(hook, "Ki", (unsigned long long)at, write);
    if (answer) site = (uint32_t)PyLong_AsUnsignedLong(answer);
    keep(&e);
    Py_XDECREF(answer);
  }
  raise_kept(&e);
  return site;
}

static int64_t limit, left; /* how many accesses are told */

/* Tells the checker of an access. Returns whether the next one is to be told, too. */
static int tell(uintptr_t at, const operand_bytes *o, int write) {
  uint32_t site = check_here(write ? CHECK_STORE : CHECK_LOAD);
  if (!site) site = number_of_line(at, write);
  int64_t words[] = {write, (int64_t)at, (int64_t)o->count, (int64_t)o->bytes,
                     (int64_t)(o->stride ? o->stride : o->bytes)};
  if (pages_are_stopped()) return 0;
  check_write(CHECK_ACCESS, site, words, 5);
  if (--left > 0) return 1;
  pages_stop();
  check_write(CHECK_LIMIT, 0, &limit, 1);
  return 0;
}

/* Whether an access to these bytes is to be told. It opens pages that nobody uses. */
static int is_protected(uintptr_t at, uint64_t bytes) {
  int yes = 0;
  for (uint64_t i = at / PAGE; i <= (at + bytes - 1) / PAGE; i++) {
    page *p = page_numbered(i);
    if (!p || p->state != PROTECTED) continue;
    if (p->users)
      yes = 1;
    else
      page_open_unused(p, 1);
  }
  return yes;
}

static void open_pages(uintptr_t at, uint64_t bytes, int step) {
  for (uint64_t i = at / PAGE; i <= (at + bytes - 1) / PAGE; i++) {
    page *p = page_numbered(i);
    if (!p || p->state != PROTECTED) continue;
    if (step && mine.pages < STEPPED) {
      mine.page[mine.pages++] = p;
      page_open(p);
    } else {
      page_open_until_rearm(p);
    }
  }
}

static void close_pages(uintptr_t at, uint64_t bytes) {
  for (uint64_t i = at / PAGE; i <= (at + bytes - 1) / PAGE; i++) {
    page *p = page_numbered(i);
    if (p) page_close(p);
  }
}

int watch_call_begins(const void *p, uint64_t n) {
  if (!n || mine.inside == NESTED || gm_forked || !is_protected((uintptr_t)p, n)) return 0;
  pages_hold();
  open_pages((uintptr_t)p, n, 0);
  return 1;
}

void watch_call_tells(const void *p, uint64_t n, int write) {
  int error = errno;
  if (!PyGILState_GetThisThreadState() || mine.inside == NESTED) return;
  mine.inside++;
  PyGILState_STATE state = PyGILState_Ensure();
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  operand_bytes o = {.at = (uintptr_t)p, .bytes = n, .count = 1};
  tell(o.at, &o, write);
  PyErr_Restore(type, value, traceback);
  PyGILState_Release(state);
  mine.inside--;
  errno = error;
}

void watch_call_ends(void) {
  int error = errno;
  pages_release();
  errno = error;
}

/* Places of registers in what gm_watch_landing has saved. */
enum { SAVED_RDI = 8, SAVED_RSI = 9, SAVED_RCX = 13, SAVED_RAX = 14, SAVED_PC = 16 };

/* Does what is left of a REP instruction: stepping would take a trap for each element. */
static void repeat(uint64_t *saved, const operand_bytes *o) {
  uint64_t n = saved[SAVED_RCX], to = saved[SAVED_RDI], from = saved[SAVED_RSI], value = saved[SAVED_RAX];
  switch (o->moves ? o->repeated : -o->repeated) {
    case 1:
      __asm__ volatile("rep movsb" : "+c"(n), "+D"(to), "+S"(from)::"memory");
      break;
    case 2:
      __asm__ volatile("rep movsw" : "+c"(n), "+D"(to), "+S"(from)::"memory");
      break;
    case 4:
      __asm__ volatile("rep movsl" : "+c"(n), "+D"(to), "+S"(from)::"memory");
      break;
    case 8:
      __asm__ volatile("rep movsq" : "+c"(n), "+D"(to), "+S"(from)::"memory");
      break;
    case -1:
      __asm__ volatile("rep stosb" : "+c"(n), "+D"(to) : "a"(value) : "memory");
      break;
    case -2:
      __asm__ volatile("rep stosw" : "+c"(n), "+D"(to) : "a"(value) : "memory");
      break;
    case -4:
      __asm__ volatile("rep stosl" : "+c"(n), "+D"(to) : "a"(value) : "memory");
      break;
    case -8:
      __asm__ volatile("rep stosq" : "+c"(n), "+D"(to) : "a"(value) : "memory");
      break;
  }
  saved[SAVED_RCX] = n, saved[SAVED_RDI] = to, saved[SAVED_RSI] = from;
  saved[SAVED_PC] += (uint64_t)o->length;
}

/* Tells the checker of an access, and opens its pages. Returns whether to step. */
__attribute__((visibility("hidden"), used)) int gm_watch_hook(uint64_t *saved) {
  int error = errno, write = mine.write;
  operand_bytes o = mine.o;
  uintptr_t other = 0, pc = mine.pc, fault = mine.fault;
  mine.inside++, mine.opened = 0; /* from here on the hook may be called in the hook, which changes mine */
  PyGILState_STATE state = PyGILState_Ensure();
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  /* A signal that comes while on_fault runs is handled by another thread, of which Python's loop in this one learns late. */
  exception raised = {0};
  if (PyErr_CheckSignals() < 0) keep(&raised);
  int step = tell(o.at, &o, write);
  if (o.repeated && o.moves) {
    other = (uintptr_t)saved[write ? SAVED_RSI : SAVED_RDI];
    if (is_protected(other, o.bytes)) step &= tell(other, &o, !write);
  }
  raise_kept(&raised);
  PyErr_Restore(type, value, traceback);
  if (mine.opened) pages_rearm();
  mine.pages = 0;
  if (o.repeated) {
    open_pages(o.at, o.bytes, 0);
    if (other) open_pages(other, o.bytes, 0);
    repeat(saved, &o);
    if (step) {
      close_pages(o.at, o.bytes);
      if (other) close_pages(other, o.bytes);
    }
    step = 0;
  } else {
    for (uint64_t i = 0; i < o.count; i++) open_pages(o.at + i * o.stride, o.bytes, step);
    open_pages(fault, 1, step); /* it is one of them, unless the operand was not decoded rightly */
  }
  int length;
  uintptr_t copy = step ? displaced((const uint8_t *)pc, &length) : 0;
  PyGILState_Release(state);
  mine.stepping = step;
  if (copy) saved[SAVED_PC] = copy, mine.next = pc + (uintptr_t)length, step = 0;
  mine.first = step;
  mine.inside--;
  errno = error;
  return step;
}

/* Protects what has been opened for an instruction. */
static void stepped(void) {
  mine.stepping = 0;
  for (int i = 0; i < mine.pages; i++) page_close(mine.page[i]);
  mine.pages = 0;
}

__attribute__((visibility("hidden"), used)) int gm_watch_close(uint64_t *saved) {
  int error = errno;
  stepped();
  saved[SAVED_PC] = mine.next;
  errno = error;
  return 0;
}

static void on_trap(int sig, siginfo_t *info, void *context) {
  ucontext_t *c = context;
  if (!mine.stepping) {
    if (trap_before.sa_flags & SA_SIGINFO) {
      trap_before.sa_sigaction(sig, info, context);
    } else if (trap_before.sa_handler != SIG_DFL && trap_before.sa_handler != SIG_IGN) {
      trap_before.sa_handler(sig);
    } else {
      signal(SIGTRAP, SIG_DFL);
      raise(SIGTRAP);
    }
    return;
  }
  if (mine.first) { /* after the landing's last instruction */
    mine.first = 0;
    return;
  }
  c->uc_mcontext.gregs[REG_EFL] &= ~0x100;
  stepped();
}

/* watch_start((hook, gone, limit)) -> whether loads and stores can be watched here. hook(address, write) returns the number of the line that
   makes an access. gone(address, bytes) is told of memory that is freed while it is watched. limit: how many accesses are told. */
static PyObject *watch_start(PyObject *self, PyObject *arguments) {
  unsigned a, b, c, d;
  PyObject *function, *second;
  long long most;
  if (!PyArg_ParseTuple(arguments, "OOL", &function, &second, &most)) return NULL;
  if (pages_are_set_up()) Py_RETURN_TRUE;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) Py_RETURN_FALSE;
  __asm__("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
  gm_watch_mask = a & 0xe7; /* x87, SSE, AVX, AVX-512 */
  operand_setup();
  struct sigaction ours = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
  sigemptyset(&ours.sa_mask);
  if (sigaction(SIGTRAP, &ours, &trap_before) < 0) return PyErr_SetFromErrno(PyExc_OSError);
  displaced_setup(gm_watch_after);
  Py_INCREF(function);
  Py_INCREF(second);
  hook = function, gone = second, limit = left = most;
  if (pages_setup() < 0) return PyErr_NoMemory();
  Py_RETURN_TRUE;
}

/* watch_memory(address, bytes) -> whether the pages of these bytes are watched from now on */
static PyObject *watch_memory(ARGS) {
  int64_t a[2];
  if (integers("watch_memory", args, n, 2, a) < 0) return NULL;
  return PyBool_FromLong(a[1] > 0 && watch_begin((uint64_t)a[0], (uint64_t)a[1]) == 0);
}

/* unwatch_memory(address, bytes): they are, once less. */
static PyObject *unwatch_memory(ARGS) {
  int64_t a[2];
  if (integers("unwatch_memory", args, n, 2, a) < 0) return NULL;
  watch_end((uint64_t)a[0], (uint64_t)a[1]);
  Py_RETURN_NONE;
}

int watch_is_on(void) { return pages_are_set_up() && !gm_forked; }

int watch_is_stopped(void) { return !pages_are_set_up() || pages_are_stopped(); }

int watch_is_own(uint64_t p, uint64_t n) {
  return pages_are_set_up() && n && gm_mappable((void *)(uintptr_t)p, (int64_t)n);
}

int watch_begin(uint64_t p, uint64_t n) {
  if (!pages_are_set_up() || !n) return -1;
  watch_calls();
  pages_change(p, n, 1);
  return 0;
}

void watch_end(uint64_t p, uint64_t n) {
  if (!pages_are_set_up() || !n) return;
  page *alone = p / PAGE == (p + n - 1) / PAGE ? page_numbered(p / PAGE) : NULL;
  if (!alone || !page_lingers(alone)) pages_change(p, n, -1);
}

char *watch_view(const void *p, uint64_t n) {
  uintptr_t at = (uintptr_t)p;
  if (watch_is_stopped() || !n || at / PAGE != (at + n - 1) / PAGE) return NULL;
  return page_view(at);
}

void watch_freed(const void *p, size_t n) {
  if (!n || !watch_is_on()) return;
  int told = 0, used = 0;
  for (uint64_t i = (uintptr_t)p / PAGE; i <= ((uintptr_t)p + n - 1) / PAGE; i++) {
    page *one = page_numbered(i);
    if (!one) continue;
    told |= one->told, used |= one->users > 0;
    one->told = 0;
    page_forget(one);
  }
  if (used) {
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *answer = PyObject_CallFunction(gone, "KK", (unsigned long long)(uintptr_t)p, (unsigned long long)n);
    if (!answer) raise_later();
    Py_XDECREF(answer);
    PyErr_Restore(type, value, traceback);
    PyGILState_Release(state);
  } else if (told) {
    check_gone((int64_t)(uintptr_t)p, (int64_t)n);
  }
}

/* watch_mappable(address, bytes) -> whether these bytes are watched from now on: they are if watch_is_own. */
static PyObject *watch_mappable(ARGS) {
  int64_t a[2];
  if (integers("watch_mappable", args, n, 2, a) < 0) return NULL;
  uint64_t at = (uint64_t)a[0], bytes = (uint64_t)a[1];
  return PyBool_FromLong(a[1] > 0 && watch_is_own(at, bytes) && watch_begin(at, bytes) == 0);
}

/* watch_renew(): as many accesses are told as at the start; what was watched is watched again. */
static PyObject *watch_renew(PyObject *self, PyObject *noargs) {
  left = limit;
  if (!pages_are_stopped()) Py_RETURN_NONE;
  pages_go_on();
  pending_watch();
  Py_RETURN_NONE;
}

/* watched_memory(address, bytes) -> whether a page of these bytes is watched */
static PyObject *watched(ARGS) {
  int64_t a[2];
  if (integers("watched_memory", args, n, 2, a) < 0) return NULL;
  for (uint64_t i = (uint64_t)a[0] / PAGE; a[1] > 0 && i <= (uint64_t)(a[0] + a[1] - 1) / PAGE; i++) {
    page *p = page_numbered(i);
    if (p && p->users) Py_RETURN_TRUE;
  }
  Py_RETURN_FALSE;
}

/* foreign_memory(address, bytes) -> whether these bytes are not such as watch_is_own reports: it may be that only calls tell of accesses */
static PyObject *foreign(ARGS) {
  int64_t a[2];
  if (integers("foreign_memory", args, n, 2, a) < 0) return NULL;
  return PyBool_FromLong(a[1] > 0 && !watch_is_own((uint64_t)a[0], (uint64_t)a[1]));
}

void watch_ends_call(void) { pages_rearm(); }

static PyObject *watch_rearm(PyObject *self, PyObject *noargs) {
  watch_ends_call();
  Py_RETURN_NONE;
}
#else
int watch_is_on(void) { return 0; }
int watch_begin(uint64_t p, uint64_t n) { return -1; }
void watch_end(uint64_t p, uint64_t n) {}
int watch_is_own(uint64_t p, uint64_t n) { return 0; }
char *watch_view(const void *p, uint64_t n) { return NULL; }
int watch_is_stopped(void) { return 1; }
void watch_ends_call(void) {}
int watch_fault(siginfo_t *info, void *context, int in_object) { return 0; }
void watch_freed(const void *p, size_t n) {}
static PyObject *watch_start(PyObject *self, PyObject *function) { Py_RETURN_FALSE; }
static PyObject *watch_memory(ARGS) { Py_RETURN_FALSE; }
static PyObject *unwatch_memory(ARGS) { Py_RETURN_NONE; }
static PyObject *watch_mappable(ARGS) { Py_RETURN_FALSE; }
static PyObject *watch_renew(PyObject *self, PyObject *noargs) { Py_RETURN_NONE; }
static PyObject *watched(ARGS) { Py_RETURN_FALSE; }
static PyObject *foreign(ARGS) { Py_RETURN_TRUE; }
static PyObject *watch_rearm(PyObject *self, PyObject *noargs) { Py_RETURN_NONE; }
#endif

/* watch_read(address, bytes) -> up to 8 bytes there as an integer, not told of */
static PyObject *watch_read(ARGS) {
  int64_t a[2], value = 0;
  if (integers("watch_read", args, n, 2, a) < 0) return NULL;
  if (a[1] < 1 || a[1] > 8) return PyErr_Format(PyExc_ValueError, "1 to 8 bytes are an integer");
  if (guarded_copy(&value, (void *)(intptr_t)a[0], (size_t)a[1]))
    return PyErr_Format(PyExc_ValueError, "the memory can't be read");
  int shift = 64 - 8 * (int)a[1];
  return PyLong_FromLongLong((int64_t)((uint64_t)value << shift) >> shift);
}

PyMethodDef watch_methods[] = {{"watch_start", watch_start, METH_O, NULL},
                               {"watch_memory", (PyCFunction)(void *)watch_memory, METH_FASTCALL, NULL},
                               {"unwatch_memory", (PyCFunction)(void *)unwatch_memory, METH_FASTCALL, NULL},
                               {"watch_mappable", (PyCFunction)(void *)watch_mappable, METH_FASTCALL, NULL},
                               {"watch_renew", watch_renew, METH_NOARGS, NULL},
                               {"watched_memory", (PyCFunction)(void *)watched, METH_FASTCALL, NULL},
                               {"foreign_memory", (PyCFunction)(void *)foreign, METH_FASTCALL, NULL},
                               {"watch_rearm", watch_rearm, METH_NOARGS, NULL},
                               {"watch_read", (PyCFunction)(void *)watch_read, METH_FASTCALL, NULL},
                               {0}};
