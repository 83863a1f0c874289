/* Word: a counter of 8 bytes in memory that all ranks of a window map, and what is announced by it.
   The protocol is in gocore/mpi/word.go. Addresses come from the package gormapy.slots, which has
   checked them; nothing here is for programs. */
#include "shim.h"
#include "_cgo_export.h"

#include <math.h>

/* Looks at a word before a wait gives up the GIL and the processor: some microseconds. */
#define LOOKS 400

#if defined(__x86_64__)
#define PAUSE() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define PAUSE() __asm__ volatile("yield")
#else
#define PAUSE() (void)0
#endif

#define LABEL 40

typedef struct {
  PyObject_HEAD
  int64_t *at;
  int64_t last;       /* what this object stored last: what the owner of the object has announced */
  uint32_t *sleepers; /* of the rank whose word it is; NULL: nobody is to be woken */
  int64_t win;
  int32_t rank;
  int looks;
  PyObject *owner; /* keeps the memory */
  char label[LABEL];
} WordObject;

/* Word(win, rank, address, owner, label): rank -1 is a word that nobody sleeps for. */
static PyObject *word_new(PyTypeObject *type, PyObject *args, PyObject *kw) {
  long long win, at;
  int rank;
  PyObject *owner;
  const char *label;
  if (check_process() < 0 || !PyArg_ParseTuple(args, "LiLOs", &win, &rank, &at, &owner, &label)) return NULL;
  if (at == 0 || at % 8)
    return PyErr_Format(PyExc_ValueError, "a word is at an address that is a multiple of 8, not at %lld", at);
  WordObject *self = allocate(type);
  if (!self) return NULL;
  self->at = (int64_t *)(intptr_t)at;
  self->win = win;
  self->rank = rank;
  self->sleepers = rank < 0 ? NULL : gm_word_sleepers(win, rank);
  self->looks = gm_cores_shared() ? 1 : LOOKS;
  Py_INCREF(owner);
  self->owner = owner;
  snprintf(self->label, sizeof self->label, "%s", label);
  return (PyObject *)self;
}

static int word_traverse(WordObject *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE((PyObject *)self));
  Py_VISIT(self->owner);
  return 0;
}

static int word_clear(WordObject *self) {
  Py_CLEAR(self->owner);
  return 0;
}

static void word_dealloc(WordObject *self) {
  PyObject_GC_UnTrack(self);
  Py_CLEAR(self->owner);
  deallocate(self);
}

static int64_t look(WordObject *self) { return __atomic_load_n(self->at, __ATOMIC_SEQ_CST); }

/* After the word was changed by a sequentially consistent instruction. */
static void ring(WordObject *self) {
  if (self->sleepers && __atomic_load_n(self->sleepers, __ATOMIC_SEQ_CST)) gm_word_ring(self->win, self->rank);
}

static void announce(WordObject *self, int64_t value) {
  (void)__atomic_exchange_n(self->at, value, __ATOMIC_SEQ_CST);
  self->last = value;
  ring(self);
}

static int integer(PyObject *o, int64_t *out) {
  *out = PyLong_AsLongLong(o);
  return *out == -1 && PyErr_Occurred() ? -1 : 0;
}

static PyObject *word_load(WordObject *self, PyObject *noargs) { return PyLong_FromLongLong(look(self)); }

static PyObject *word_store(WordObject *self, PyObject *value) {
  int64_t v;
  if (integer(value, &v) < 0 || check_process() < 0) return NULL;
  announce(self, v);
  Py_RETURN_NONE;
}

static PyObject *word_add(WordObject *self, PyObject *amount) {
  int64_t v;
  if (integer(amount, &v) < 0 || check_process() < 0) return NULL;
  int64_t before = __atomic_fetch_add(self->at, v, __ATOMIC_SEQ_CST);
  ring(self);
  return PyLong_FromLongLong(before);
}

#define WORD_ARGS WordObject *self, PyObject *const *args, Py_ssize_t n

static int arguments(const char *name, Py_ssize_t n, Py_ssize_t least, Py_ssize_t most) {
  if (n >= least && n <= most) return check_process();
  PyErr_Format(PyExc_TypeError, "%s: takes %zd arguments (%zd given)", name, least, n);
  return -1;
}

/* swap(expected, value) -> what was there: value was stored if that is expected. */
static PyObject *word_swap(WORD_ARGS) {
  int64_t expected, value;
  if (arguments("swap", n, 2, 2) < 0 || integer(args[0], &expected) < 0 || integer(args[1], &value) < 0) return NULL;
  if (__atomic_compare_exchange_n(self->at, &expected, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) ring(self);
  return PyLong_FromLongLong(expected);
}

/* Copies to or from the memory of a program; -1 with an exception. */
static int copy(void *to, const void *from, Py_ssize_t n) {
  if (!program_copy(to, from, n)) return 0;
  raise_code(gm_faulted(guard_address()));
  return -1;
}

/* put(address, source, bytes, value): copies a contiguous buffer of so many bytes
   there, then stores value. */
static PyObject *word_put(WORD_ARGS) {
  int64_t to, size, value = 0;
  Py_buffer from;
  if (arguments("put", n, 4, 4) < 0 || integer(args[0], &to) < 0 || integer(args[2], &size) < 0 ||
      integer(args[3], &value) < 0 || get_buffer(args[1], &from, PyBUF_ANY_CONTIGUOUS) < 0)
    return NULL;
  if (from.len != size) {
    PyErr_Format(PyExc_ValueError, "%s: a token of this channel has %lld bytes, not %zd", self->label, (long long)size,
                 from.len);
    PyBuffer_Release(&from);
    return NULL;
  }
  int failed = copy((void *)(intptr_t)to, from.buf, size);
  PyBuffer_Release(&from);
  if (failed) return NULL;
  announce(self, value);
  Py_RETURN_NONE;
}

/* copy_in(address, source): copies a contiguous buffer to an address; a put announces it later. */
static PyObject *word_copy_in(WORD_ARGS) {
  int64_t to;
  Py_buffer from;
  if (arguments("copy_in", n, 2, 2) < 0 || integer(args[0], &to) < 0 ||
      get_buffer(args[1], &from, PyBUF_ANY_CONTIGUOUS) < 0)
    return NULL;
  int failed = copy((void *)(intptr_t)to, from.buf, from.len);
  PyBuffer_Release(&from);
  if (failed) return NULL;
  Py_RETURN_NONE;
}

/* move(to, from, bytes, amount): copies between addresses, then adds amount to the word. */
static PyObject *word_move(WORD_ARGS) {
  int64_t to, from, size, amount;
  if (arguments("move", n, 4, 4) < 0 || integer(args[0], &to) < 0 || integer(args[1], &from) < 0 ||
      integer(args[2], &size) < 0 || integer(args[3], &amount) < 0)
    return NULL;
  if (copy((void *)(intptr_t)to, (void *)(intptr_t)from, size) < 0) return NULL;
  __atomic_fetch_add(self->at, amount, __ATOMIC_SEQ_CST);
  ring(self);
  Py_RETURN_NONE;
}

/* take(address, bytes, value) -> the bytes there; then stores value. */
static PyObject *word_take(WORD_ARGS) {
  int64_t from, size, value;
  if (arguments("take", n, 3, 3) < 0 || integer(args[0], &from) < 0 || integer(args[1], &size) < 0 ||
      integer(args[2], &value) < 0)
    return NULL;
  PyObject *token = PyBytes_FromStringAndSize(NULL, size);
  if (!token) return NULL;
  if (copy(PyBytes_AS_STRING(token), (void *)(intptr_t)from, size) < 0) {
    Py_DECREF(token);
    return NULL;
  }
  announce(self, value);
  return token;
}

/* take_into(address, buffer, value): copies what is there into a buffer, as many bytes
   as that has; then stores value. */
static PyObject *word_take_into(WORD_ARGS) {
  int64_t from, value;
  Py_buffer to;
  if (arguments("take_into", n, 3, 3) < 0 || integer(args[0], &from) < 0 || integer(args[2], &value) < 0 ||
      get_buffer(args[1], &to, PyBUF_ANY_CONTIGUOUS | PyBUF_WRITABLE) < 0)
    return NULL;
  int failed = copy(to.buf, (void *)(intptr_t)from, to.len);
  PyBuffer_Release(&to);
  if (failed) return NULL;
  announce(self, value);
  Py_RETURN_NONE;
}

/* Nanoseconds of a time-out in seconds; -1 for None. */
static int nanoseconds(PyObject *o, int64_t *out) {
  *out = -1;
  if (o == Py_None) return 0;
  double s = PyFloat_AsDouble(o);
  if (s == -1 && PyErr_Occurred()) return -1;
  if (isnan(s)) {
    PyErr_SetString(PyExc_ValueError, "timeout: seconds, or None to wait for as long as it takes; got nan");
    return -1;
  }
  *out = s <= 0 ? 0 : s > 1e9 ? -1 : (int64_t)(s * 1e9);
  return 0;
}

/* wait(value, timeout, peers) -> what the word has: value or more, or less if time was over.
   peers are the ranks of the window that can change it; none of them left is an error. */
static PyObject *word_wait(WORD_ARGS) {
  int64_t value, timeout, pending = 0, now = look(self);
  if (arguments("wait", n, 3, 3) < 0 || integer(args[0], &value) < 0) return NULL;
  if (now >= value) return PyLong_FromLongLong(now);
  if (nanoseconds(args[1], &timeout) < 0) return NULL;
  if (timeout == 0) return PyLong_FromLongLong(now);
  for (int i = self->looks; i; i--) {
    PAUSE();
    if ((now = look(self)) >= value) return PyLong_FromLongLong(now);
  }
  PyObject *list = PySequence_Fast(args[2], "peers: expecting a sequence of ranks");
  if (!list) return NULL;
  Py_ssize_t k = PySequence_Fast_GET_SIZE(list);
  int32_t *peers = PyMem_Malloc((k ? k : 1) * sizeof *peers);
  if (!peers) {
    Py_DECREF(list);
    return PyErr_NoMemory();
  }
  for (Py_ssize_t i = 0; i < k; i++) {
    int64_t rank;
    if (integer(PySequence_Fast_GET_ITEM(list, i), &rank) < 0) {
      Py_DECREF(list);
      PyMem_Free(peers);
      return NULL;
    }
    peers[i] = (int32_t)rank;
  }
  Py_DECREF(list);
  int code;
  gm_status own;
  BLOCKING(code, pending, &own,
           gm_word_wait(self->win, (int64_t)(intptr_t)self->at, value, timeout, peers, (int)k, self->label, &pending));
  PyMem_Free(peers);
  if (code) return none_or(code);
  return PyLong_FromLongLong(look(self));
}

/* wake(): wakes all ranks of the window that sleep. */
static PyObject *word_wake(WordObject *self, PyObject *noargs) {
  if (check_process() < 0) return NULL;
  gm_word_ring(self->win, -1);
  Py_RETURN_NONE;
}

static PyMemberDef word_members[] = {{"last", T_LONGLONG, offsetof(WordObject, last), 0, "what was stored last"},
                                     {"rank", T_INT, offsetof(WordObject, rank), READONLY, "whose word it is"},
                                     {0}};

#define M(name, flags, doc) {#name, (PyCFunction)(void *)word_##name, flags, doc}

static PyMethodDef word_methods[] = {
    M(load, METH_NOARGS, "load()\n\nReturn what the word has."),
    M(store, METH_O, "store(value)\n\nStore a value."),
    M(add, METH_O, "add(amount)\n\nAdd to the word, and return what it had."),
    M(swap, METH_FASTCALL,
      "swap(expected, value)\n\nStore a value if the word has what is expected; return what it had."),
    M(put, METH_FASTCALL,
      "put(address, source, bytes, value)\n\nCopy a buffer of so many bytes there, then store a value."),
    M(copy_in, METH_FASTCALL, "copy_in(address, source)\n\nCopy a buffer there; a put announces it later."),
    M(move, METH_FASTCALL, "move(to, from, bytes, amount)\n\nCopy between addresses, then add to the word."),
    M(take, METH_FASTCALL, "take(address, bytes, value)\n\nReturn the bytes there, after storing a value."),
    M(take_into, METH_FASTCALL,
      "take_into(address, buffer, value)\n\nCopy what is there into a buffer, then store a value."),
    M(wait, METH_FASTCALL,
      "wait(value, timeout, peers)\n\nWait until the word has this value or more; return what it has."),
    M(wake, METH_NOARGS, "wake()\n\nWake the ranks of the window that sleep."),
    {0}};

static PyType_Slot word_slots[] = {
    {Py_tp_members, word_members},
    {Py_tp_methods, word_methods},
    {Py_tp_traverse, word_traverse},
    {Py_tp_clear, word_clear},
    {Py_tp_dealloc, word_dealloc},
    {Py_tp_new, word_new},
    {Py_tp_doc, "Counter in memory that all ranks map: Word(win, rank, address, owner, label)."},
    {0}};
PyType_Spec word_spec = {"gormapy._fast.Word", sizeof(WordObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                         word_slots};
