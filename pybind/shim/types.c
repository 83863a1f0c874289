/* The base types of the classes in gormapy.MPI: a handle and what the hot methods need beside it. Python adds the rest
   of each class. Holder and Started, which have no such class, keep memory for a call. */
#include "shim.h"
#include "_cgo_export.h"

static PyMemberDef handle_members[] = {{"_h", T_LONGLONG, offsetof(HandleObject, h), 0, "handle"}, {0}};
static PyMemberDef comm_members[] = {{"_h", T_LONGLONG, offsetof(CommObject, h), 0, "handle"}, {0}};
static PyMemberDef win_members[] = {{"_h", T_LONGLONG, offsetof(WinObject, h), 0, "handle"}, {0}};
static PyMemberDef request_members[] = {{"_h", T_LONGLONG, offsetof(RequestObject, h), 0, "handle"},
                                        {"_buf", T_OBJECT, offsetof(RequestObject, buf), 0, "what is kept alive"},
                                        {"_kind", T_INT, offsetof(RequestObject, kind), 0, "kind"},
                                        {0}};
static PyMemberDef datatype_members[] = {
    {"_h", T_LONGLONG, offsetof(DatatypeObject, h), 0, "handle"},
    {"_size", T_LONGLONG, offsetof(DatatypeObject, shape.size), 0, "bytes of data"},
    {"_extent", T_LONGLONG, offsetof(DatatypeObject, shape.extent), 0, "extent"},
    {"_lb", T_LONGLONG, offsetof(DatatypeObject, shape.lb), 0, "lower bound"},
    {"_true_lb", T_LONGLONG, offsetof(DatatypeObject, shape.true_lb), 0, "true lower bound"},
    {"_true_extent", T_LONGLONG, offsetof(DatatypeObject, shape.true_extent), 0, "true extent"},
    {"_dense", T_INT, offsetof(DatatypeObject, dense), 0, "one run"},
    {0}};
static PyMemberDef status_members[] = {{"_source", T_INT, offsetof(StatusObject, st.source), 0, "source"},
                                       {"_tag", T_INT, offsetof(StatusObject, st.tag), 0, "tag"},
                                       {"_error", T_INT, offsetof(StatusObject, st.error), 0, "error"},
                                       {"_cancelled", T_INT, offsetof(StatusObject, st.cancelled), 0, "cancelled"},
                                       {"_nbytes", T_LONGLONG, offsetof(StatusObject, st.bytes), 0, "bytes"},
                                       {0}};

static int request_traverse(RequestObject *self, visitproc visit, void *arg) {
  Py_VISIT(self->buf);
  return 0;
}

/* The collector calls this for a request in a cycle, which may still be in progress. */
static int request_clear(RequestObject *self) {
  PyObject *memory = self->buf;
  self->buf = NULL;
  if (self->h != 0 && memory != NULL)
    keep_until_over(self->h, memory);
  else
    Py_XDECREF(memory);
  return 0;
}

static void request_dealloc(RequestObject *self) {
  PyObject_GC_UnTrack(self);
  request_clear(self);
  Py_TYPE(self)->tp_free(self);
}

static PyObject *status_new(PyTypeObject *type, PyObject *args, PyObject *kw) {
  StatusObject *s = (StatusObject *)type->tp_alloc(type, 0);
  if (s) s->st.source = GM_ANY_SOURCE, s->st.tag = GM_ANY_TAG;
  return (PyObject *)s;
}

/* Shows a status's memory, which it keeps. A status itself has no buffer: a program that passes one as a message's
   buffer has mixed up its arguments. */
typedef struct {
  PyObject_HEAD
  StatusObject *status;
} StatusMemoryObject;

static int status_memory_getbuffer(PyObject *self, Py_buffer *view, int flags) {
  gm_status *st = &((StatusMemoryObject *)self)->status->st;
  return PyBuffer_FillInfo(view, self, st, sizeof *st, 0, flags);
}

static PyBufferProcs status_memory_buffer = {status_memory_getbuffer, NULL};

static void status_memory_dealloc(PyObject *self) {
  Py_DECREF(((StatusMemoryObject *)self)->status);
  PyObject_Free(self);
}

static PyTypeObject StatusMemoryType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "gormapy._fast.StatusMemory",
    .tp_basicsize = sizeof(StatusMemoryObject),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_dealloc = status_memory_dealloc,
    .tp_as_buffer = &status_memory_buffer,
    .tp_doc = "Memory of a status.",
};

/* _memory() -> memoryview of the bytes of the status. */
static PyObject *status_memory(PyObject *self, PyObject *none) {
  StatusMemoryObject *m = PyObject_New(StatusMemoryObject, &StatusMemoryType);
  if (!m) return NULL;
  m->status = (StatusObject *)Py_NewRef(self);
  PyObject *view = PyMemoryView_FromObject((PyObject *)m);
  Py_DECREF(m);
  return view;
}

static PyMethodDef status_methods[] = {{"_memory", status_memory, METH_NOARGS, NULL}, {0}};

void datatype_forget(DatatypeObject *t) {
  Py_CLEAR(t->recipe);
  Py_CLEAR(t->parts);
  Py_CLEAR(t->construction);
}

static void datatype_dealloc(PyObject *self) {
  datatype_forget((DatatypeObject *)self);
  Py_TYPE(self)->tp_free(self);
}

/* How the datatype was made, None if it is predefined: see Datatype._constructed. */
static PyObject *datatype_construction(PyObject *self, void *unused) {
  DatatypeObject *t = (DatatypeObject *)self;
  if (!t->construction && t->recipe) {
    PyObject *c = PyObject_CallMethod(self, "_constructed", "OO", t->recipe, t->parts);
    if (!c) return NULL;
    Py_XSETREF(t->construction, c);
  }
  PyObject *c = t->construction ? t->construction : Py_None;
  Py_INCREF(c);
  return c;
}

static int datatype_set_construction(PyObject *self, PyObject *value, void *unused) {
  datatype_forget((DatatypeObject *)self);
  if (value == NULL || value == Py_None) return 0;
  Py_INCREF(value);
  ((DatatypeObject *)self)->construction = value;
  return 0;
}

static PyObject *datatype_told(PyObject *self, void *unused) {
  return PyBool_FromLong(((DatatypeObject *)self)->construction != NULL);
}

static PyGetSetDef datatype_getset[] = {
    {"_construction", datatype_construction, datatype_set_construction, "how it was made", NULL},
    {"_told", datatype_told, NULL, "whether somebody has asked how it was made, or Python has made it", NULL},
    {0}};

#define BASE(Name, Object, members, methods_, buffer_)                                        \
  PyTypeObject Name##Type = {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "gormapy._fast." #Name, \
                             .tp_basicsize = sizeof(Object),                                  \
                             .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,            \
                             .tp_members = members,                                           \
                             .tp_methods = methods_,                                          \
                             .tp_as_buffer = buffer_,                                         \
                             .tp_new = PyType_GenericNew,                                     \
                             .tp_doc = "Base of gormapy.MPI." #Name "."}

/* A window shows its memory as tomemory() does (PEP 3118). */
static int win_getbuffer(PyObject *self, Py_buffer *view, int flags) {
  PyObject *memory = PyObject_CallMethod(self, "tomemory", NULL);
  if (!memory) return -1;
  int rc = PyObject_GetBuffer(memory, view, flags);
  Py_DECREF(memory);
  return rc;
}

static PyBufferProcs win_buffer = {win_getbuffer, NULL};

BASE(Handle, HandleObject, handle_members, NULL, NULL);
BASE(Comm, CommObject, comm_members, comm_methods, NULL);
BASE(Win, WinObject, win_members, win_methods, &win_buffer);
BASE(Datatype, DatatypeObject, datatype_members, datatype_methods, NULL);

PyTypeObject RequestType = {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "gormapy._fast.Request",
                            .tp_basicsize = sizeof(RequestObject),
                            .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
                            .tp_members = request_members,
                            .tp_methods = request_methods,
                            .tp_traverse = (traverseproc)request_traverse,
                            .tp_clear = (inquiry)request_clear,
                            .tp_dealloc = (destructor)request_dealloc,
                            .tp_free = PyObject_GC_Del,
                            .tp_new = PyType_GenericNew,
                            .tp_doc = "Base of gormapy.MPI.Request."};

PyTypeObject StatusType = {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "gormapy._fast.Status",
                           .tp_basicsize = sizeof(StatusObject),
                           .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                           .tp_members = status_members,
                           .tp_methods = status_methods,
                           .tp_new = status_new,
                           .tp_doc = "Base of gormapy.MPI.Status."};

/* BOTTOM and the like are integers that show a buffer of nothing, for those who look for one. Calls take none from
   them: see get_buffer in memory.c. */
static int sentinel_getbuffer(PyObject *self, Py_buffer *view, int flags) {
  return PyBuffer_FillInfo(view, NULL, PyLong_AsVoidPtr(self), 0, 0, flags);
}

static PyBufferProcs sentinel_buffer = {sentinel_getbuffer, NULL};

PyTypeObject SentinelType = {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "gormapy._fast.Sentinel",
                             .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, .tp_as_buffer = &sentinel_buffer,
                             .tp_base = &PyLong_Type, .tp_doc = "Base of what stands in place of a buffer."};

/* address(object) -> where its handle, or its status, is. */
PyObject *address_of(PyObject *self, PyObject *o) {
  const struct {
    PyTypeObject *type;
    size_t offset;
  } all[] = {{&HandleType, offsetof(HandleObject, h)},     {&CommType, offsetof(CommObject, h)},
             {&WinType, offsetof(WinObject, h)},           {&RequestType, offsetof(RequestObject, h)},
             {&DatatypeType, offsetof(DatatypeObject, h)}, {&StatusType, offsetof(StatusObject, st)}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (PyObject_TypeCheck(o, all[i].type)) return PyLong_FromVoidPtr((char *)o + all[i].offset);
  return PyErr_Format(PyExc_TypeError, "expecting an MPI instance, got %.100s", Py_TYPE(o)->tp_name);
}

static void started_dealloc(StartedObject *self) {
  if (self->h && !gm_forked) {
    gm_abandon(self->h, 0);
    keep_until_over(self->h, self->buf);
  } else {
    Py_XDECREF(self->buf);
  }
  Py_TYPE(self)->tp_free(self);
}

PyTypeObject StartedType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "gormapy._fast.Started",
    .tp_basicsize = sizeof(StartedObject),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_dealloc = (destructor)started_dealloc,
    .tp_doc = "What a call has started, for finish() or adopt().",
};

static void holder_dealloc(HolderObject *self) {
  PyBuffer_Release(&self->view);
  Py_TYPE(self)->tp_free(self);
}

PyTypeObject HolderType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "gormapy._fast.Holder",
    .tp_basicsize = sizeof(HolderObject),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_dealloc = (destructor)holder_dealloc,
    .tp_doc = "Keeps a buffer acquired.",
};

/* Adds a second table of methods to a type. */
static int add_methods(PyTypeObject *type, PyMethodDef *methods) {
  for (PyMethodDef *m = methods; m->ml_name; m++) {
    PyObject *method = PyDescr_NewMethod(type, m);
    int failed = method ? PyDict_SetItemString(type->tp_dict, m->ml_name, method) : -1;
    Py_XDECREF(method);
    if (failed) return -1;
  }
  PyType_Modified(type);
  return 0;
}

int ready_types(PyObject *module) {
  DatatypeType.tp_dealloc = datatype_dealloc;
  DatatypeType.tp_getset = datatype_getset;
  if (PyType_Ready(&StatusMemoryType) < 0) return -1;
  struct {
    const char *name;
    PyTypeObject *type;
  } all[] = {{"Handle", &HandleType},   {"Sentinel", &SentinelType}, {"Comm", &CommType},       {"Win", &WinType},
             {"Request", &RequestType}, {"Datatype", &DatatypeType}, {"Status", &StatusType},   {"Holder", &HolderType},
             {"Memory", &MemoryType},   {"Buffer", &BufferType},     {"Started", &StartedType}, {"Word", &WordType}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    if (PyType_Ready(all[i].type) < 0) return -1;
    Py_INCREF(all[i].type);
    if (PyModule_AddObject(module, all[i].name, (PyObject *)all[i].type) < 0) return -1;
  }
  if (add_methods(&CommType, comm_coll_methods) < 0) return -1;
  if (add_methods(&CommType, comm_making_methods) < 0) return -1;
  return add_methods(&CommType, comm_object_methods);
}
