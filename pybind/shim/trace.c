/* Recording calls: see trace.h. Everything here runs with the GIL held, and a process has one
   recording at most. The thread-local state says which call of this thread is
   being recorded; the generation, whether it belongs to this recording. */
#include "trace.h"
#include "_cgo_export.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

enum { KNOWN = 64, AHEAD = 8 /* records */ };

int gm_tracing;
static trace_head *head;
static uint32_t generation;

/* initial-exec: a call has to find it without a function call */
static __thread struct {
  trace_record *record; /* of the outermost call, NULL outside */
  uint32_t depth, id, generation;
} mine __attribute__((tls_model("initial-exec")));

/* Takes what there is no room for. Its contents mean nothing. */
static trace_record nowhere;

/* Handles whose meaning has been recorded, by their low bits. */
static int64_t known[2][KNOWN];

static uint64_t now(void) {
#if defined(__x86_64__)
  if (head->clock == TRACE_CLOCK_TICKS) return __rdtsc();
#elif defined(__aarch64__)
  if (head->clock == TRACE_CLOCK_TICKS) {
    uint64_t t;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(t));
    return t;
  }
#endif
  struct timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* This thread's first call in this recording. */
static __attribute__((noinline)) void enter(void) {
  mine.generation = generation;
  mine.depth = 0;
  mine.record = NULL;
  mine.id = (uint32_t)syscall(SYS_gettid);
  if (head->threads == 0) head->first = mine.id;
  __atomic_store_n(&head->threads, head->threads + 1, __ATOMIC_RELEASE);
}

void trace_open(int name) {
  if (mine.generation != generation) enter();
  if (mine.depth++) return;
  uint64_t i = __atomic_fetch_add(&head->next, 1, __ATOMIC_RELAXED);
  if (i >= head->capacity) {
    mine.record = &nowhere;
    return;
  }
  trace_record *r = (trace_record *)((char *)head + TRACE_RECORDS_AT) + i;
  /* The kernel has zeroed the records on another core. Those of a call and of its message are fetched meanwhile. */
  for (int line = 0; line < 4; line++) __builtin_prefetch((char *)(r + AHEAD) + 64 * line, 1);
  mine.record = r;
  r->kind = TRACE_CALL;
  r->name = (uint16_t)name;
  r->thread = mine.id;
  r->peer = TRACE_NO_PEER;
  r->tag = -1;
  r->begin = now();
  __atomic_store_n(&r->state, TRACE_STATE_OPEN, __ATOMIC_RELEASE);
}

void trace_close(int ok) {
  if (mine.generation != generation || !mine.depth || --mine.depth) return;
  trace_record *r = mine.record;
  mine.record = NULL;
  if (!r || r == &nowhere) return;
  if (!ok) r->op = -1;
  r->end = now();
  __atomic_store_n(&r->state, TRACE_STATE_DONE, __ATOMIC_RELEASE);
}

/* Out of line, so that a method that is not recorded pays for a branch only. */
PyObject *trace_hot(hot_method f, int name, PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames) {
  trace_open(name);
  PyObject *result = f(self, args, n, kwnames);
  trace_close(result != NULL);
  return result;
}

static trace_record *current(void) { return mine.generation == generation ? mine.record : NULL; }

static void define(int kind, int64_t object) {
  int window = kind == TRACE_CALL_WIN;
  int64_t *slot = &known[window][object & (KNOWN - 1)];
  if (*slot == object || object == 0) return;
  *slot = object;
  gm_trace_define(object, window);
}

static int32_t narrow(int64_t v) { return v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : (int32_t)v; }

void trace_note(int kind, int64_t object, int64_t peer, int64_t tag, int64_t bytes) {
  trace_record *r = current();
  if (!r) return;
  define(kind, object);
  r->kind = (uint16_t)kind;
  r->object = object;
  r->peer = narrow(peer);
  r->tag = narrow(tag);
  if (peer != GM_PROC_NULL) r->bytes += bytes;
}

void trace_note_bytes(int64_t bytes) {
  trace_record *r = current();
  if (r) r->bytes += bytes;
}

void trace_note_rma(int64_t win, int64_t rank, int64_t disp, int64_t bytes, int64_t span, int op) {
  trace_record *r = current();
  if (!r) return;
  define(TRACE_CALL_WIN, win);
  r->kind = TRACE_CALL_WIN;
  r->object = win;
  r->peer = narrow(rank);
  r->disp = disp;
  r->bytes = rank == GM_PROC_NULL ? 0 : bytes;
  r->tag = narrow(span);
  r->op = op;
}

void trace_note_access(const gm_access *a) {
  int64_t span, ignored, disp = a->target.disp;
  if (!current()) return;
  int64_t bytes = a->origin.count * gm_trace_span(a->origin.datatype, a->origin.count, &ignored);
  gm_desc *d = gm_win_desc(a->win);
  if (d && d->handle == a->win && a->rank >= 0 && a->rank < d->size) disp *= d->target[a->rank].unit;
  gm_trace_span(a->target.datatype, a->target.count, &span);
  trace_note_rma(a->win, a->rank, disp, bytes, span, (int)a->op);
}

void trace_note_status(const gm_status *st, int add) {
  trace_record *r = current();
  if (!r || st->source < 0) return;
  r->peer = st->source;
  r->tag = st->tag;
  r->bytes = add ? r->bytes + st->bytes : st->bytes;
}

int64_t trace_bytes(int64_t type, int64_t count) {
  int64_t ignored;
  return type && count > 0 ? count * gm_trace_span(type, count, &ignored) : 0;
}

/* A Python method that is recorded: it stands in a class in the method's place. */
typedef struct {
  PyObject_HEAD
  vectorcall call;
  PyObject *method;
  int name;
} RecordedObject;

static PyObject *recorded_call(PyObject *self, PyObject *const *args, size_t nargs, PyObject *kwnames) {
  RecordedObject *m = (RecordedObject *)self;
  if (!TRACING) return call_vector(m->method, args, nargs, kwnames);
  trace_open(m->name);
  PyObject *result = call_vector(m->method, args, nargs, kwnames);
  trace_close(result != NULL);
  return result;
}

static PyObject *method_type; /* types.MethodType */

static PyObject *recorded_get(PyObject *self, PyObject *obj, PyObject *type) {
  if (obj == NULL || obj == Py_None) {
    Py_INCREF(self);
    return self;
  }
  PyObject *stack[] = {self, obj};
  return call_vector(method_type, stack, 2, NULL);
}

/* What it is asked for is the method's: its name, signature, documentation. */
static PyObject *recorded_getattro(PyObject *self, PyObject *name) {
  return PyObject_GetAttr(((RecordedObject *)self)->method, name);
}

static void recorded_dealloc(RecordedObject *self) {
  PyObject_GC_UnTrack(self);
  Py_CLEAR(self->method);
  deallocate(self);
}

static int recorded_traverse(RecordedObject *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE((PyObject *)self));
  Py_VISIT(self->method);
  return 0;
}

static PyObject *recorded_new(PyTypeObject *type, PyObject *args, PyObject *kw) {
  PyObject *method;
  int name;
  if (!PyArg_ParseTuple(args, "Oi", &method, &name)) return NULL;
  RecordedObject *self = allocate(type);
  if (!self) return NULL;
  Py_INCREF(method);
  self->call = recorded_call;
  self->method = method;
  self->name = name;
  return (PyObject *)self;
}

static PyMemberDef recorded_members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(RecordedObject, call), READONLY},
                                         {0}};
static PyType_Slot recorded_slots[] = {{Py_tp_members, recorded_members},
                                       {Py_tp_call, PyVectorcall_Call},
                                       {Py_tp_descr_get, recorded_get},
                                       {Py_tp_getattro, recorded_getattro},
                                       {Py_tp_traverse, recorded_traverse},
                                       {Py_tp_dealloc, recorded_dealloc},
                                       {Py_tp_new, recorded_new},
                                       {Py_tp_doc, "A method whose calls are recorded: Recorded(method, name)."},
                                       {0}};
static PyType_Spec recorded_spec = {
    "gormapy._fast.Recorded", sizeof(RecordedObject), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    recorded_slots};

int ready_trace(PyObject *module) {
  PyObject *types = PyImport_ImportModule("types");
  method_type = types ? PyObject_GetAttrString(types, "MethodType") : NULL;
  Py_XDECREF(types);
  return method_type && new_type(module, &recorded_spec) ? 0 : -1;
}

/* trace(on): records calls into the core's part, or no more. */
PyObject *trace_switch(PyObject *self, PyObject *on) {
  int yes = PyObject_IsTrue(on);
  if (yes < 0) return NULL;
  if (!yes) {
    gm_tracing = 0;
    Py_RETURN_NONE;
  }
  trace_head *part = check_process() < 0 ? NULL : gm_trace_head();
  if (!part) return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_RuntimeError, "the core is not recording");
  head = part;
  generation++;
  memset(known, 0, sizeof known);
  gm_tracing = 1;
  Py_RETURN_NONE;
}

/* trace_mark() -> how many records there are. */
PyObject *trace_mark(PyObject *self, PyObject *noargs) {
  return PyLong_FromUnsignedLongLong(head ? __atomic_load_n(&head->next, __ATOMIC_ACQUIRE) : 0);
}

/* trace_part(from) -> bytes: a part with the records from that one on, and those
   before that say what handles stand for. */
PyObject *trace_part(PyObject *self, PyObject *args) {
  unsigned long long from;
  if (!PyArg_ParseTuple(args, "K", &from)) return NULL;
  if (!head) return PyErr_Format(PyExc_RuntimeError, "nothing has been recorded");
  uint64_t next = __atomic_load_n(&head->next, __ATOMIC_ACQUIRE), n = next < head->capacity ? next : head->capacity;
  const trace_record *all = (const trace_record *)((const char *)head + TRACE_RECORDS_AT);
  uint64_t defined = 0;
  for (uint64_t i = 0; i < from && i < n; i++) defined += all[i].kind >= TRACE_DEFINITIONS;
  uint64_t rest = from < n ? n - from : 0;
  PyObject *out = PyBytes_FromStringAndSize(NULL, TRACE_RECORDS_AT + (Py_ssize_t)((defined + rest) * sizeof *all));
  if (!out) return NULL;
  char *to = PyBytes_AS_STRING(out);
  memcpy(to, head, TRACE_RECORDS_AT);
  trace_head *copy = (trace_head *)to;
  copy->next = defined + rest + (next - n); /* what was dropped stays dropped */
  copy->capacity = defined + rest;
  trace_record *r = (trace_record *)(to + TRACE_RECORDS_AT);
  for (uint64_t i = 0; i < from && i < n; i++)
    if (all[i].kind >= TRACE_DEFINITIONS) *r++ = all[i];
  if (rest) memcpy(r, all + from, rest * sizeof *all);
  return out;
}
