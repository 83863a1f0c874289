/* System calls of other libraries on watched memory, for mpiexec --check. The kernel does not raise SIGSEGV for memory that is protected: the
   call fails with EFAULT. So the functions of the C library that load or store a buffer by a system call are replaced, in
   the tables (GOT) by which other libraries and the interpreter call them, by functions that open the buffer meanwhile and tell
   the checker of the access: np.save, file.write and socket.recv_into of a window's memory work as without the checker.

   The tables of libraries that are loaded later are changed when the next memory is watched. Calls in the C library itself, such as those
   of stdio when a buffer is flushed, are on memory of its own. */
#define _GNU_SOURCE
#include "watch.h"

#if defined(__x86_64__)
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* Makes a call that loads n bytes, and one that stores as many bytes as it returns. */
#define LOADING(call, at, n)                         \
  do {                                               \
    uint64_t bytes_ = (n);                           \
    int watched_ = watch_call_begins((at), bytes_);  \
    if (watched_) watch_call_tells((at), bytes_, 0); \
    ssize_t r_ = call;                               \
    if (watched_) watch_call_ends();                 \
    return r_;                                       \
  } while (0)
#define STORING(call, at, n, each)                                                      \
  do {                                                                                  \
    uint64_t bytes_ = (n);                                                              \
    int watched_ = watch_call_begins((at), bytes_);                                     \
    ssize_t r_ = call;                                                                  \
    if (watched_ && r_ > 0) watch_call_tells((at), (uint64_t)r_ * (uint64_t)(each), 1); \
    if (watched_) watch_call_ends();                                                    \
    return r_;                                                                          \
  } while (0)

static ssize_t our_write(int fd, const void *p, size_t n) { LOADING(write(fd, p, n), p, n); }
static ssize_t our_pwrite(int fd, const void *p, size_t n, off_t at) { LOADING(pwrite(fd, p, n, at), p, n); }
static ssize_t our_send(int fd, const void *p, size_t n, int flags) { LOADING(send(fd, p, n, flags), p, n); }
static ssize_t our_sendto(int fd, const void *p, size_t n, int flags, const struct sockaddr *to, socklen_t len) {
  LOADING(sendto(fd, p, n, flags, to, len), p, n);
}
static size_t our_fwrite(const void *p, size_t size, size_t n, FILE *f) {
  LOADING((ssize_t)fwrite(p, size, n, f), p, size * n);
}
static ssize_t our_read(int fd, void *p, size_t n) { STORING(read(fd, p, n), p, n, 1); }
static ssize_t our_pread(int fd, void *p, size_t n, off_t at) { STORING(pread(fd, p, n, at), p, n, 1); }
static ssize_t our_recv(int fd, void *p, size_t n, int flags) { STORING(recv(fd, p, n, flags), p, n, 1); }
static ssize_t our_recvfrom(int fd, void *p, size_t n, int flags, struct sockaddr *from, socklen_t *len) {
  STORING(recvfrom(fd, p, n, flags, from, len), p, n, 1);
}
static size_t our_fread(void *p, size_t size, size_t n, FILE *f) {
  STORING((ssize_t)fread(p, size, n, f), p, size * n, size);
}

/* Buffers of a call, and how many were opened for it. The kernel takes no more than IOV_MAX. */
enum { MOST_VECTORS = 1024 };
typedef struct {
  const struct iovec *v;
  size_t n;
  int opened;
} vectors;

static void vectors_begin(vectors *w, const struct iovec *v, size_t n) {
  *w = (vectors){v, v && n <= MOST_VECTORS ? n : 0, 0}; /* else the kernel refuses it */
  for (size_t i = 0; i < w->n; i++) w->opened += watch_call_begins(v[i].iov_base, v[i].iov_len);
}

/* Tells of the first bytes of the buffers. All are told of if one is watched: two may be on one page, which is open already for the
   second one. */
static void vectors_tell(const vectors *w, uint64_t bytes, int write) {
  for (size_t i = 0; w->opened && i < w->n && bytes; i++) {
    uint64_t n = w->v[i].iov_len < bytes ? w->v[i].iov_len : bytes;
    if (n) watch_call_tells(w->v[i].iov_base, n, write);
    bytes -= n;
  }
}

static void vectors_end(const vectors *w) {
  for (int i = 0; i < w->opened; i++) watch_call_ends();
}

#define LOADING_VECTORS(call, v, n)   \
  do {                                \
    vectors w_;                       \
    vectors_begin(&w_, (v), (n));     \
    vectors_tell(&w_, UINT64_MAX, 0); \
    ssize_t r_ = call;                \
    vectors_end(&w_);                 \
    return r_;                        \
  } while (0)
#define STORING_VECTORS(call, v, n)                 \
  do {                                              \
    vectors w_;                                     \
    vectors_begin(&w_, (v), (n));                   \
    ssize_t r_ = call;                              \
    if (r_ > 0) vectors_tell(&w_, (uint64_t)r_, 1); \
    vectors_end(&w_);                               \
    return r_;                                      \
  } while (0)

static ssize_t our_writev(int fd, const struct iovec *v, int n) { LOADING_VECTORS(writev(fd, v, n), v, (size_t)n); }
static ssize_t our_pwritev(int fd, const struct iovec *v, int n, off_t at) {
  LOADING_VECTORS(pwritev(fd, v, n, at), v, (size_t)n);
}
static ssize_t our_sendmsg(int fd, const struct msghdr *m, int flags) {
  LOADING_VECTORS(sendmsg(fd, m, flags), m->msg_iov, m->msg_iovlen);
}
static ssize_t our_readv(int fd, const struct iovec *v, int n) { STORING_VECTORS(readv(fd, v, n), v, (size_t)n); }
static ssize_t our_preadv(int fd, const struct iovec *v, int n, off_t at) {
  STORING_VECTORS(preadv(fd, v, n, at), v, (size_t)n);
}
static ssize_t our_recvmsg(int fd, struct msghdr *m, int flags) {
  STORING_VECTORS(recvmsg(fd, m, flags), m->msg_iov, m->msg_iovlen);
}
/* These two by their numbers: older C libraries do not have them. */
static ssize_t our_pwritev2(int fd, const struct iovec *v, int n, off_t at, int flags) {
  LOADING_VECTORS(syscall(SYS_pwritev2, fd, v, n, at, 0L, flags), v, (size_t)n);
}
static ssize_t our_preadv2(int fd, const struct iovec *v, int n, off_t at, int flags) {
  STORING_VECTORS(syscall(SYS_preadv2, fd, v, n, at, 0L, flags), v, (size_t)n);
}

static const struct {
  const char *name;
  void *ours;
} replaced[] = {
    {"write", our_write},          {"pwrite", our_pwrite},   {"pwrite64", our_pwrite},    {"send", our_send},
    {"sendto", our_sendto},        {"fwrite", our_fwrite},   {"read", our_read},          {"pread", our_pread},
    {"pread64", our_pread},        {"recv", our_recv},       {"recvfrom", our_recvfrom},  {"fread", our_fread},
    {"writev", our_writev},        {"pwritev", our_pwritev}, {"pwritev64", our_pwritev},  {"pwritev2", our_pwritev2},
    {"pwritev64v2", our_pwritev2}, {"sendmsg", our_sendmsg}, {"readv", our_readv},        {"preadv", our_preadv},
    {"preadv64", our_preadv},      {"preadv2", our_preadv2}, {"preadv64v2", our_preadv2}, {"recvmsg", our_recvmsg}};
enum { REPLACED = sizeof replaced / sizeof *replaced };

/* An object that is loaded: what its calls of other objects are bound by. */
typedef struct {
  uintptr_t base, relro, relro_end;
  const Elf64_Sym *symbols;
  const char *names;
} object;

static void rebind(const object *o, const Elf64_Rela *r, uint64_t bytes) {
  for (const Elf64_Rela *end = r + bytes / sizeof *r; r && r < end; r++) {
    unsigned kind = ELF64_R_TYPE(r->r_info);
    if (kind != R_X86_64_JUMP_SLOT && kind != R_X86_64_GLOB_DAT) continue;
    const char *name = o->names + o->symbols[ELF64_R_SYM(r->r_info)].st_name;
    for (int i = 0; i < REPLACED; i++) {
      if (strcmp(name, replaced[i].name) != 0) continue;
      uintptr_t slot = o->base + r->r_offset, size = (uintptr_t)sysconf(_SC_PAGESIZE), page = slot & -size;
      int closed = slot >= o->relro && slot < o->relro_end;
      if (closed && mprotect((void *)page, size, PROT_READ | PROT_WRITE) < 0) continue;
      __atomic_store_n((void **)slot, replaced[i].ours, __ATOMIC_SEQ_CST);
      if (closed) mprotect((void *)page, size, PROT_READ);
    }
  }
}

static int look_at(struct dl_phdr_info *info, size_t size, void *unused) {
  object o = {.base = info->dlpi_addr};
  const Elf64_Dyn *d = NULL;
  uintptr_t here = (uintptr_t)look_at, libc = (uintptr_t)strcmp;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const Elf64_Phdr *p = &info->dlpi_phdr[i];
    uintptr_t from = info->dlpi_addr + p->p_vaddr, to = from + p->p_memsz;
    if (p->p_type == PT_LOAD && ((here >= from && here < to) || (libc >= from && libc < to))) return 0;
    if (p->p_type == PT_DYNAMIC) d = (const Elf64_Dyn *)from;
    if (p->p_type == PT_GNU_RELRO) o.relro = from, o.relro_end = to;
  }
  const Elf64_Rela *plt = NULL, *others = NULL;
  uint64_t plt_bytes = 0, other_bytes = 0;
  for (; d && d->d_tag != DT_NULL; d++) {
    void *at = (void *)(uintptr_t)d->d_un.d_ptr;
    if (d->d_tag == DT_SYMTAB) o.symbols = at;
    if (d->d_tag == DT_STRTAB) o.names = at;
    if (d->d_tag == DT_JMPREL) plt = at;
    if (d->d_tag == DT_RELA) others = at;
    if (d->d_tag == DT_PLTRELSZ) plt_bytes = d->d_un.d_val;
    if (d->d_tag == DT_RELASZ) other_bytes = d->d_un.d_val;
  }
  /* the kernel's object has offsets in the place of addresses */
  if (!o.symbols || !o.names || (uintptr_t)o.names < o.base) return 0;
  rebind(&o, plt, plt_bytes);
  rebind(&o, others, other_bytes);
  return 0;
}

static int count(struct dl_phdr_info *info, size_t size, void *adds) {
  *(unsigned long long *)adds = info->dlpi_adds;
  return 1;
}

void watch_calls(void) {
  static unsigned long long seen;
  unsigned long long adds = 0;
  dl_iterate_phdr(count, &adds);
  if (adds == seen) return;
  seen = adds;
  dl_iterate_phdr(look_at, NULL);
}
#else
void watch_calls(void) {}
#endif
