/* Copies to and from the memory of programs, which may fault: a file that it maps was
   truncated (SIGBUS), or it was unmapped or protected (SIGSEGV). Go makes a fault in Go
   code a panic, which mpi.Contain makes an error; one in C code would end the process.

   The protocol. A thread that is about to copy writes where its stack is to gm_guard_sp,
   and 0 when it is done. Our handler, which stands before Go's, looks there:

   1. The fault is this thread's copy: it goes on after the copy, which reports 1.
   2. The fault is elsewhere in this object: Go's handler, which knows Go code.
   3. Anything else: whoever installed a handler after Go's and before us, else Go's, which
      hands it on to whoever was there before.

   Who installs a handler after us (faulthandler.enable) gets faults first, and to
   faulthandler every one is fatal: gormapy/_faulthandler.py has guard_arm called after that, which
   puts ours in front again, or forgets a handler that was taken back. A handler that has
   been told of a fault and gets it again has no use for it, or has raised it anew to end the
   process: that goes to Go's handler.

   Nothing here costs the copy more than a few instructions; without an implementation for
   the processor the copy is not guarded. guarded_copy may be called with the GIL or without,
   program_copy with it. */
#include "watch.h" /* Python.h asks for GNU's extensions, which registers in a context are */

#include <link.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>

/* The stack pointer of a thread in a copy. */
__attribute__((visibility("hidden"), tls_model("initial-exec"))) __thread void *gm_guard_sp;
static __thread void *fault_address;

#if defined(__x86_64__)
#define PC(c) ((c)->uc_mcontext.gregs[REG_RIP])
#define SP(c) ((c)->uc_mcontext.gregs[REG_RSP])
/* All registers that a function must preserve are on the stack meanwhile. */
__asm__(
    ".text\n"
    ".hidden gm_guarded_copy\n.globl gm_guarded_copy\n.type gm_guarded_copy, @function\n"
    ".hidden gm_guard_fixup\n.globl gm_guard_fixup\n"
    "gm_guarded_copy:\n.cfi_startproc\n"
    "push %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset %rbp, -16\n"
    "mov %rsp, %rbp\n.cfi_def_cfa_register %rbp\n"
    "push %rbx\npush %r12\npush %r13\npush %r14\npush %r15\nsub $8, %rsp\n"
    "mov gm_guard_sp@gottpoff(%rip), %rax\n"
    "mov %rsp, %fs:(%rax)\n"
    "call memmove@PLT\n"
    "xor %eax, %eax\n"
    "1: mov gm_guard_sp@gottpoff(%rip), %rcx\n"
    "movq $0, %fs:(%rcx)\n"
    "add $8, %rsp\npop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\n.cfi_def_cfa %rsp, 8\n"
    "ret\n"
    "gm_guard_fixup:\n.cfi_def_cfa %rbp, 16\n"
    "mov $1, %eax\n"
    "jmp 1b\n"
    ".cfi_endproc\n.size gm_guarded_copy, . - gm_guarded_copy\n");
#elif defined(__aarch64__)
#define PC(c) ((c)->uc_mcontext.pc)
#define SP(c) ((c)->uc_mcontext.sp)
__asm__(
    ".text\n"
    ".hidden gm_guarded_copy\n.globl gm_guarded_copy\n.type gm_guarded_copy, %function\n"
    ".hidden gm_guard_fixup\n.globl gm_guard_fixup\n"
    "gm_guarded_copy:\n.cfi_startproc\n"
    "stp x29, x30, [sp, #-160]!\n.cfi_def_cfa_offset 160\n.cfi_offset x29, -160\n.cfi_offset x30, -152\n"
    "stp x19, x20, [sp, #16]\nstp x21, x22, [sp, #32]\nstp x23, x24, [sp, #48]\nstp x25, x26, [sp, #64]\n"
    "stp x27, x28, [sp, #80]\nstp d8, d9, [sp, #96]\nstp d10, d11, [sp, #112]\nstp d12, d13, [sp, #128]\n"
    "stp d14, d15, [sp, #144]\n"
    "mov x29, sp\n"
    "adrp x9, :gottprel:gm_guard_sp\nldr x9, [x9, #:gottprel_lo12:gm_guard_sp]\n"
    "mrs x10, tpidr_el0\n"
    "str x29, [x10, x9]\n"
    "bl memmove\n"
    "mov w0, #0\n"
    "1: adrp x9, :gottprel:gm_guard_sp\nldr x9, [x9, #:gottprel_lo12:gm_guard_sp]\n"
    "mrs x10, tpidr_el0\n"
    "str xzr, [x10, x9]\n"
    "ldp x19, x20, [sp, #16]\nldp x21, x22, [sp, #32]\nldp x23, x24, [sp, #48]\nldp x25, x26, [sp, #64]\n"
    "ldp x27, x28, [sp, #80]\nldp d8, d9, [sp, #96]\nldp d10, d11, [sp, #112]\nldp d12, d13, [sp, #128]\n"
    "ldp d14, d15, [sp, #144]\n"
    "ldp x29, x30, [sp], #160\n.cfi_def_cfa_offset 0\n"
    "ret\n"
    "gm_guard_fixup:\n.cfi_def_cfa_offset 160\n"
    "mov w0, #1\n"
    "b 1b\n"
    ".cfi_endproc\n.size gm_guarded_copy, . - gm_guarded_copy\n");
#endif

#ifdef PC
extern int gm_guarded_copy(void *to, const void *from, size_t n);
extern char gm_guard_fixup[];

/* How deep the stack of a copy can be: a fault of a signal handler that interrupts it
   comes from another stack, or from further down. */
#define COPY_STACK (16 << 10)

static const int caught[] = {SIGSEGV, SIGBUS};
enum { CAUGHT = 2 };

/* Go's handler, which was there when this object was loaded; who came after Go, with an
   address and an instruction that it was told of; where this object lies. */
static struct sigaction first[CAUGHT], later[CAUGHT];
static volatile uintptr_t told_pc[CAUGHT], told_address[CAUGHT];
static volatile int has_later[CAUGHT];
static uintptr_t object_from, object_to;

static void hand_on(const struct sigaction *to, int sig, siginfo_t *info, void *context) {
  if (to->sa_flags & SA_SIGINFO) {
    to->sa_sigaction(sig, info, context);
  } else if (to->sa_handler != SIG_DFL && to->sa_handler != SIG_IGN) {
    to->sa_handler(sig);
  } else { /* the instruction faults again, or the signal is pending again, and ends the process */
    signal(sig, SIG_DFL);
    if (info->si_code <= 0) raise(sig);
  }
}

static void on_fault(int sig, siginfo_t *info, void *context) {
  ucontext_t *c = context;
  uintptr_t sp = (uintptr_t)gm_guard_sp, pc = (uintptr_t)PC(c), address = (uintptr_t)info->si_addr;
  int sent = info->si_code <= 0, i = sig == SIGBUS; /* sent: by kill or raise, there is no address */
  if (sig == SIGSEGV && !sent && watch_fault(info, context, pc >= object_from && pc < object_to)) return;
  if (sp && !sent && sp - (uintptr_t)SP(c) < COPY_STACK) {
    fault_address = info->si_addr;
    SP(c) = sp;
    PC(c) = (uintptr_t)gm_guard_fixup;
    return;
  }
  int again = told_pc[i] == pc && (sent || told_address[i] == address);
  if (has_later[i] && !again && (pc < object_from || pc >= object_to)) {
    told_pc[i] = pc, told_address[i] = address;
    hand_on(&later[i], sig, info, context);
  } else {
    hand_on(&first[i], sig, info, context);
  }
}

/* Finds the code of this object. */
static int look_at_object(struct dl_phdr_info *info, size_t size, void *unused) {
  uintptr_t here = (uintptr_t)on_fault;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    uintptr_t from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr, to = from + info->dlpi_phdr[i].p_memsz;
    if (info->dlpi_phdr[i].p_type == PT_LOAD && here >= from && here < to) {
      object_from = from, object_to = to;
      return 1;
    }
  }
  return 0;
}

void guard_arm(int forget) {
  if (!object_to) dl_iterate_phdr(look_at_object, NULL);
  for (int i = 0; i < CAUGHT; i++) {
    struct sigaction now, ours = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
    sigfillset(&ours.sa_mask); /* as Go's handler has it */
    if (forget) has_later[i] = 0;
    if (sigaction(caught[i], NULL, &now) < 0 || ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_fault)) continue;
    if (!first[i].sa_sigaction) {
      first[i] = now;
    } else {
      has_later[i] = 0; /* on_fault may run in another thread */
      later[i] = now;
      told_pc[i] = told_address[i] = 0;
      has_later[i] = 1;
    }
    sigaction(caught[i], &ours, NULL);
  }
}

int guarded_copy(void *to, const void *from, size_t n) { return gm_guarded_copy(to, from, n); }
#else
void guard_arm(int forget) {}
int guarded_copy(void *to, const void *from, size_t n) {
  memmove(to, from, n);
  return 0;
}
#endif

int program_copy(void *to, const void *from, Py_ssize_t n) {
  int faulted;
  if (n <= LONG_COPY) return guarded_copy(to, from, n);
  WITHOUT_GIL(faulted = guarded_copy(to, from, n));
  return faulted;
}

int64_t guard_address(void) { return (int64_t)(intptr_t)fault_address; }
