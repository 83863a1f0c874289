/* NumPy's arrays in the arena, where the other ranks of the host can map them (gormapy.shared_arrays).

   NumPy takes the memory of arrays from a handler (its NEP 49), a table of functions in a capsule. It asks a context
   variable for the handler, and keeps the capsule in the array, whose memory the same handler frees. There are two
   ways to have arrays in the arena:

   - For a context (gormapy.shared_arrays): switch_arrays makes a handler that stands in front of the one in force and
     sets NumPy's context variable. As all context variables it is that of a thread or a task of asyncio, and a thread
     that begins has the variable's default.
   - Everywhere (mpiexec --shared-arrays): the default is one capsule, NumPy's PyDataMem_DefaultHandler. It gets a table
     of ours, which stands in front of NumPy's. It holds in all threads, but where a program has set a handler of
     its own. It is never taken back, since arrays have the capsule.

   Every handler of ours takes large arrays from the pool (gocore/arena/pool.go), and passes on to the one behind it
   what is small, what the pool has no room for, and all memory that is not the pool's: arrays from before. The pool's
   addresses are multiples of 4096, so that for most memory no call of Go has to find out. The handler behind may be any
   other library's; its capsule lives as long as ours.

   Memory of the pool that is resized stays in the pool. Other memory that is resized stays where it is, as only the
   handler behind knows its size.

   A forked child can't call Go. It has its own copies of all arrays (gocore/arena/snapshot.go), allocates from the
   handler behind, and only returns the pages of an array that it frees. Without NumPy, or while nothing has been
   switched on, nothing here is ever called.

   Handlers are called with the GIL or, by some libraries, without. Only the pool's lock matters to them. */
#include "raw.h"
#include "watch.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "_cgo_export.h"

/* numpy/ndarraytypes.h: PyDataMemAllocator and PyDataMem_Handler, version 1. */
typedef struct {
  void *ctx;
  void *(*malloc)(void *ctx, size_t n);
  void *(*calloc)(void *ctx, size_t count, size_t size);
  void *(*realloc)(void *ctx, void *p, size_t n);
  void (*free)(void *ctx, void *p, size_t n);
} allocator;

typedef struct {
  char name[127];
  uint8_t version;
  allocator allocator;
} handler;

/* numpy/__multiarray_api.h: places in the table of functions, since NumPy 1.22 (feature version 15). */
enum { FEATURE_VERSION = 211, SET_HANDLER = 304, GET_HANDLER = 305, DEFAULT_HANDLER = 306, HANDLERS_SINCE = 15 };

static const char capsule_name[] = "mem_handler";

/* A handler of ours. */
typedef struct {
  handler handler;
  const allocator *behind;
  PyObject *capsule_behind; /* has the table behind; NULL: it is static */
  int on;                   /* 0: everything is passed on */
} switched;

static uint64_t least = UINT64_MAX; /* the size from which on arrays are in the pool */

/* What a forked child inherits; see before_fork. */
static gm_chunk chunks[GM_MAX_CHUNKS];
static int chunk_count;
static int inherited; /* not 0 in a forked child */

static const gm_chunk *chunk_of(const void *p) {
  for (int i = 0; i < chunk_count; i++)
    if ((uintptr_t)p - chunks[i].addr < chunks[i].bytes) return &chunks[i];
  return NULL;
}

static int may_be_ours(const void *p) { return p && ((uintptr_t)p & 4095) == 0; }

static void *array_malloc(void *ctx, size_t n) {
  const switched *s = ctx;
  if (s->on && n >= least && !gm_forked) {
    void *p = gm_array_alloc(n, 0);
    if (p) return p;
  }
  return s->behind->malloc(s->behind->ctx, n);
}

static void *array_calloc(void *ctx, size_t count, size_t size) {
  const switched *s = ctx;
  size_t n;
  if (s->on && !gm_forked && !__builtin_mul_overflow(count, size, &n) && n >= least) {
    void *p = gm_array_alloc(n, 1);
    if (p) return p;
  }
  return s->behind->calloc(s->behind->ctx, count, size);
}

/* In a child: the size of p is not known, but what follows it may be read up to the end of the chunk. */
static void *resize_inherited(const switched *s, void *p, size_t n) {
  const gm_chunk *c = chunk_of(p);
  if (!c) return s->behind->realloc(s->behind->ctx, p, n);
  void *to = s->behind->malloc(s->behind->ctx, n);
  size_t there = c->addr + c->bytes - (uintptr_t)p;
  if (to) memcpy(to, p, n < there ? n : there);
  return to;
}

static void *array_realloc(void *ctx, void *p, size_t n) {
  const switched *s = ctx;
  if (!p) return array_malloc(ctx, n);
  if (may_be_ours(p)) {
    if (gm_forked) return resize_inherited(s, p, n);
    int ours = 0;
    if (watch_is_on()) watch_freed(p, gm_array_bytes(p));
    void *to = gm_array_resize(p, n, &ours);
    if (to) return to;
    if (ours) { /* the pool is full */
      if ((to = s->behind->malloc(s->behind->ctx, n))) gm_array_move(to, p, n);
      return to;
    }
  }
  return s->behind->realloc(s->behind->ctx, p, n);
}

static void array_free(void *ctx, void *p, size_t n) {
  const switched *s = ctx;
  if (may_be_ours(p)) {
    if (gm_forked && chunk_of(p)) {
      madvise(p, n & ~(size_t)(sysconf(_SC_PAGESIZE) - 1), MADV_DONTNEED);
      return;
    }
    if (!gm_forked) watch_freed(p, n);
    if (!gm_forked && gm_array_free(p)) return;
  }
  s->behind->free(s->behind->ctx, p, n);
}

static void set_table(switched *s) {
  strcpy(s->handler.name, "gormapy");
  s->handler.version = 1;
  s->handler.allocator = (allocator){s, array_malloc, array_calloc, array_realloc, array_free};
}

/* Forks. The steps are those of gocore/arena/snapshot.go. */

static void before_fork(void) {
  if (!inherited) chunk_count = gm_array_before_fork(chunks);
}

static void after_fork(void) {
  if (inherited) return;
  gm_array_after_fork(chunks, chunk_count);
  watch_ends_call(); /* the copies have been made of pages that are watched */
}

static void in_child(void) {
  if (inherited) return; /* a child's child: all is private already */
  inherited = 1;
  for (int i = 0; i < chunk_count; i++) {
    gm_chunk *c = &chunks[i];
    void *at = (void *)(uintptr_t)c->addr;
    if (!c->live) {
      mmap(at, c->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
      continue;
    }
    void *copy = (void *)(uintptr_t)c->copy;
    if (copy && mremap(copy, c->bytes, c->bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at) != MAP_FAILED) continue;
    if (c->fd >= 0 && mmap(at, c->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, c->fd, 0) != MAP_FAILED) {
      close(c->fd);
      continue;
    }
    static const char why[] =
        "gormapy: a forked child ends, since there is no memory for copies of its parent's arrays (gormapy.shared_arrays)\n";
    if (write(STDERR_FILENO, why, sizeof why - 1) < 0) _exit(126);
    _exit(127); /* otherwise it would write to its parent's arrays */
  }
}

/* NumPy. */

/* Returns the table of NumPy's functions, or NULL with an exception. Imports NumPy. */
static void **numpy_api(void) {
  static void **api;
  if (api) return api;
  PyObject *module = PyImport_ImportModule("numpy._core._multiarray_umath");
  if (!module && PyErr_ExceptionMatches(PyExc_ImportError)) { /* NumPy 1 */
    PyErr_Clear();
    module = PyImport_ImportModule("numpy.core._multiarray_umath");
  }
  PyObject *capsule = module ? PyObject_GetAttrString(module, "_ARRAY_API") : NULL;
  Py_XDECREF(module);
  void **table = capsule ? PyCapsule_GetPointer(capsule, NULL) : NULL;
  Py_XDECREF(capsule); /* the module keeps it */
  if (!table) return NULL;
  unsigned version = ((unsigned (*)(void))table[FEATURE_VERSION])();
  if (version < HANDLERS_SINCE)
    return (void **)PyErr_Format(PyExc_ImportError,
                                 "shared arrays need NumPy 1.22 or later: this one has C API %u, not %d", version,
                                 HANDLERS_SINCE);
  return api = table;
}

/* What is needed before the first array is made. Returns the table of NumPy's functions, or NULL with an exception. */
static void **ready_arrays(void) {
  void **api = numpy_api();
  if (!api || least != UINT64_MAX || gm_forked) return api;
  if (pthread_atfork(before_fork, after_fork, in_child)) return (void **)PyErr_NoMemory();
  least = gm_array_from();
  return api;
}

static void drop_capsule(PyObject *capsule) {
  switched *s = PyCapsule_GetPointer(capsule, capsule_name);
  Py_XDECREF(s->capsule_behind);
  free(s);
}

static PyObject *set_handler(void **api, PyObject *capsule) {
  return ((PyObject * (*)(PyObject *)) api[SET_HANDLER])(capsule);
}

/* switch_arrays(on) -> a pair for restore_arrays: the handler of this context before, and that of now. */
static PyObject *raw_switch_arrays(ARGS) {
  if (n != 1) return PyErr_Format(PyExc_TypeError, "switch_arrays takes 1 argument");
  int on = PyObject_IsTrue(args[0]);
  void **api = on < 0 ? NULL : ready_arrays();
  if (!api) return NULL;
  PyObject *now = ((PyObject * (*)(void)) api[GET_HANDLER])();
  if (!now) return NULL;
  handler *behind = PyCapsule_GetPointer(now, capsule_name);
  switched *s = behind ? calloc(1, sizeof *s) : NULL;
  if (!s) {
    Py_DECREF(now);
    return behind ? PyErr_NoMemory() : NULL;
  }
  set_table(s);
  s->on = on;
  if (behind->allocator.malloc == array_malloc) { /* ours need not stand in front of each other */
    const switched *other = (const switched *)behind;
    s->behind = other->behind, s->capsule_behind = other->capsule_behind;
    Py_XINCREF(s->capsule_behind);
    Py_DECREF(now);
  } else {
    s->behind = &behind->allocator, s->capsule_behind = now;
  }
  PyObject *capsule = PyCapsule_New(s, capsule_name, drop_capsule);
  if (!capsule) {
    Py_XDECREF(s->capsule_behind);
    free(s);
    return NULL;
  }
  PyObject *before = set_handler(api, capsule);
  PyObject *both = before ? PyTuple_Pack(2, before, capsule) : NULL;
  Py_DECREF(capsule); /* the context has it, and arrays */
  Py_XDECREF(before);
  return both;
}

/* restore_arrays((before, now)). If another block has begun since then and has not ended, as with generators, that one's
   handler stays, and what it restores later does as the handler before. */
static PyObject *raw_restore_arrays(ARGS) {
  PyObject *before, *now;
  if (n != 1 || !PyArg_ParseTuple(args[0], "OO", &before, &now)) return NULL;
  switched *mine = PyCapsule_GetPointer(now, capsule_name);
  const handler *other = mine ? PyCapsule_GetPointer(before, capsule_name) : NULL;
  void **api = other ? ready_arrays() : NULL;
  PyObject *current = api ? ((PyObject * (*)(void)) api[GET_HANDLER])() : NULL;
  if (!current) return NULL;
  mine->on = other->allocator.malloc == array_malloc && ((const switched *)other)->on;
  const handler *inner = current == now ? NULL : PyCapsule_GetPointer(current, capsule_name);
  int stays = inner && inner->allocator.malloc == array_malloc && inner != (const handler *)other;
  PyObject *replaced = stays ? Py_NewRef(current) : set_handler(api, before);
  Py_DECREF(current);
  if (!replaced) return NULL;
  Py_DECREF(replaced);
  Py_RETURN_NONE;
}

/* arrays_everywhere(): from now on all threads make arrays in the pool. */
static PyObject *raw_arrays_everywhere(ARGS) {
  static switched everywhere;
  void **api = ready_arrays();
  if (!api) return NULL;
  if (!everywhere.on) {
    PyObject *capsule = *(PyObject **)api[DEFAULT_HANDLER];
    handler *behind = PyCapsule_GetPointer(capsule, capsule_name);
    if (!behind) return NULL;
    set_table(&everywhere);
    everywhere.behind = &behind->allocator;
    everywhere.on = 1;
    if (PyCapsule_SetPointer(capsule, &everywhere) < 0) {
      everywhere.on = 0;
      return NULL;
    }
  }
  Py_RETURN_NONE;
}

PyMethodDef array_methods[] = {F(switch_arrays), F(restore_arrays), F(arrays_everywhere), {0}};
