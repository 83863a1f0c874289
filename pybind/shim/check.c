/* Events for mpiexec --check: see check.h. Called with the GIL held; Go's writers hold the stream's lock too. */
#include "raw.h"
#include "check.h"
#include "_cgo_export.h"

#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static check_head *stream;
static uint64_t capacity;
static __thread uint32_t thread_id;

static uint64_t now(void) {
  struct timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void put(uint64_t at, uint64_t word) { memcpy((char *)stream + CHECK_DATA_AT + at % capacity, &word, 8); }

static void append(uint32_t kind, uint32_t site, const int64_t *words, uint64_t n, const char *text, uint64_t bytes) {
  uint64_t size = CHECK_HEAD_BYTES + 8 * n + (bytes + 7) / 8 * 8;
  uint32_t nobody = 0;
  if (!thread_id) thread_id = (uint32_t)syscall(SYS_gettid);
  for (int spins = 0;
       !__atomic_compare_exchange_n(&stream->lock, &nobody, thread_id, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
       nobody = 0)
    if (++spins > 64) sched_yield();
  uint64_t at = stream->written, time = now();
  while (at + size - __atomic_load_n(&stream->read, __ATOMIC_ACQUIRE) > capacity) usleep(50);
  put(at, kind | n << 16 | bytes << 32);
  put(at + 8, time);
  put(at + 16, thread_id | (uint64_t)site << 32);
  at += CHECK_HEAD_BYTES;
  for (uint64_t i = 0; i < n; i++, at += 8) put(at, (uint64_t)words[i]);
  for (uint64_t i = 0; i < bytes; i += 8, at += 8) {
    uint64_t word = 0;
    memcpy(&word, text + i, bytes - i < 8 ? bytes - i : 8);
    put(at, word);
  }
  __atomic_store_n(&stream->written, at, __ATOMIC_RELEASE);
  __atomic_store_n(&stream->lock, 0, __ATOMIC_RELEASE);
}

void check_write(uint32_t kind, uint32_t site, const int64_t *words, uint64_t n) {
  if (stream) append(kind, site, words, n, "", 0);
}

int64_t check_next(void) {
  static int64_t number;
  return ++number;
}

/* check_number() -> the number of the next operation or request */
static PyObject *check_number(PyObject *self, PyObject *noargs) { return PyLong_FromLongLong(check_next()); }

void check_gone(int64_t address, int64_t bytes) {
  int64_t words[] = {address, bytes};
  if (stream) append(CHECK_GONE, 0, words, 2, "", 0);
}

/* check_open(): events are written to the core's stream from now on. */
static PyObject *check_open(PyObject *self, PyObject *noargs) {
  check_head *s = check_process() < 0 ? NULL : gm_check_stream();
  if (!s) return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_RuntimeError, "the job is not checked");
  stream = s;
  capacity = s->capacity;
  Py_RETURN_NONE;
}

static int failed;

static void after_python(void) {
  if (!gm_forked) append(CHECK_END, 0, NULL, 0, "failed", failed ? 6 : 0);
}

/* check_end(how): the program ends; how: whether it has failed. The event is written when Python has ended: functions that are registered
   with atexit, and __del__, may still call MPI. */
static PyObject *check_end(PyObject *self, PyObject *how) {
  if (!stream || gm_forked) Py_RETURN_NONE;
  failed = PyObject_IsTrue(how);
  if (Py_AtExit(after_python) < 0) after_python();
  Py_RETURN_NONE;
}

/* check_event(kind, site, text or None, *words): write an event. */
static PyObject *check_event(ARGS) {
  int64_t words[CHECK_MOST_WORDS], head[2];
  const char *text = "";
  Py_ssize_t bytes = 0;
  if (n < 3 || n - 3 > CHECK_MOST_WORDS)
    return PyErr_Format(PyExc_ValueError, "an event has 3 to %d arguments", CHECK_MOST_WORDS + 3);
  for (int i = 0; i < 2; i++)
    if (((head[i] = PyLong_AsLongLong(args[i])) == -1 && PyErr_Occurred())) return NULL;
  if (args[2] != Py_None && !(text = PyUnicode_AsUTF8AndSize(args[2], &bytes))) return NULL;
  for (Py_ssize_t i = 3; i < n; i++)
    if ((words[i - 3] = PyLong_AsLongLong(args[i])) == -1 && PyErr_Occurred()) return NULL;
  if (!stream || gm_forked) Py_RETURN_NONE;
  append((uint32_t)head[0], (uint32_t)head[1], words, (uint64_t)(n - 3), text, (uint64_t)bytes);
  Py_RETURN_NONE;
}

PyMethodDef check_methods[] = {{"check_open", check_open, METH_NOARGS, NULL},
                               {"check_number", check_number, METH_NOARGS, NULL},
                               {"check_end", check_end, METH_O, NULL},
                               {"check_event", (PyCFunction)(void *)check_event, METH_FASTCALL, NULL},
                               {0}};
