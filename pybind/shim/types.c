/* The base types of the classes in gormapy.MPI: a handle and what the hot methods need beside it. Python adds the rest
   of each class. Holder and Started, which have no such class, keep memory for a call. */
#include "shim.h"
#include "_cgo_export.h"

static PyMemberDef handle_members[] = {{"_h", T_LONGLONG, offsetof(HandleObject, h), 0, "handle"}, {0}};
static PyMemberDef comm_members[] = {
    {"_h", T_LONGLONG, offsetof(CommObject, h), 0, "handle"},
    {"_placed", T_LONGLONG, offsetof(CommObject, placed), 0, "handle with known edges"},
    {0}};
static PyMemberDef message_members[] = {{"_h", T_LONGLONG, offsetof(MessageObject, h), 0, "handle"},
                                        {"_nbytes", T_LONGLONG, offsetof(MessageObject, nbytes), 0, "bytes"},
                                        {0}};
static PyMemberDef win_members[] = {{"_h", T_LONGLONG, offsetof(WinObject, h), 0, "handle"}, {0}};
static PyMemberDef request_members[] = {{"_h", T_LONGLONG, offsetof(RequestObject, h), 0, "handle"},
                                        {"_buf", T_OBJECT, offsetof(RequestObject, buf), 0, "what is kept alive"},
                                        {"_kind", T_INT, offsetof(RequestObject, kind), 0, "kind"},
                                        {"_arriving", T_OBJECT, offsetof(RequestObject, arriving), 0, "an object's"},
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
  Py_VISIT(Py_TYPE((PyObject *)self));
  Py_VISIT(self->buf);
  Py_VISIT(self->arriving);
  return 0;
}

/* The collector calls this for a request in a cycle, which may still be in progress. */
static int request_clear(RequestObject *self) {
  PyObject *memory = self->buf;
  self->buf = NULL;
  Py_CLEAR(self->arriving);
  if (self->h != 0 && memory != NULL)
    keep_until_over(self->h, memory);
  else
    Py_XDECREF(memory);
  return 0;
}

static void request_dealloc(RequestObject *self) {
  PyObject_GC_UnTrack(self);
  request_clear(self);
  deallocate(self);
}

/* Status(status=None) */
static PyObject *status_new(PyTypeObject *type, PyObject *args, PyObject *kw) {
  static char *names[] = {"status", NULL};
  PyObject *from = Py_None;
  if ((PyTuple_GET_SIZE(args) || kw) && !PyArg_ParseTupleAndKeywords(args, kw, "|O:Status", names, &from)) return NULL;
  if (from != Py_None && !PyObject_TypeCheck(from, StatusType))
    return PyErr_Format(PyExc_TypeError, "expecting Status, got %.100s", type_name(from));
  StatusObject *s = allocate(type);
  if (!s) return NULL;
  s->st = from == Py_None ? (gm_status){.source = GM_ANY_SOURCE, .tag = GM_ANY_TAG} : ((StatusObject *)from)->st;
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

static void status_memory_dealloc(PyObject *self) {
  Py_DECREF(((StatusMemoryObject *)self)->status);
  deallocate(self);
}

static PyTypeObject *StatusMemoryType;

static PyType_Slot status_memory_slots[] = {{Py_bf_getbuffer, status_memory_getbuffer},
                                            {Py_tp_dealloc, status_memory_dealloc},
                                            {Py_tp_doc, "Memory of a status."},
                                            {0}};

/* _memory() -> memoryview of the bytes of the status. */
static PyObject *status_memory(PyObject *self, PyObject *none) {
  StatusMemoryObject *m = PyObject_New(StatusMemoryObject, StatusMemoryType);
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
  deallocate(self);
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

/* A window shows its memory as tomemory() does (PEP 3118). */
static int win_getbuffer(PyObject *self, Py_buffer *view, int flags) {
  PyObject *memory = PyObject_CallMethod(self, "tomemory", NULL);
  if (!memory) return -1;
  int rc = PyObject_GetBuffer(memory, view, flags);
  Py_DECREF(memory);
  return rc;
}

#define BASE_DOC(Name) {Py_tp_doc, "Base of gormapy.MPI." Name "."}

static PyType_Slot handle_slots[] = {{Py_tp_members, handle_members}, BASE_DOC("Handle"), {0}};
static PyType_Slot group_slots[] = {{Py_tp_methods, group_methods}, BASE_DOC("Group"), {0}};
static PyType_Slot file_slots[] = {{Py_tp_methods, file_methods}, BASE_DOC("File"), {0}};
static PyType_Slot comm_slots[] = {{Py_tp_members, comm_members}, {Py_tp_methods, comm_methods}, BASE_DOC("Comm"), {0}};
static PyType_Slot message_slots[] = {
    {Py_tp_members, message_members}, {Py_tp_methods, message_methods}, BASE_DOC("Message"), {0}};
static PyType_Slot win_slots[] = {{Py_tp_members, win_members},
                                  {Py_tp_methods, win_methods},
                                  {Py_bf_getbuffer, win_getbuffer},
                                  {Py_bf_releasebuffer, nothing_to_release},
                                  BASE_DOC("Win"),
                                  {0}};
static PyType_Slot datatype_slots[] = {{Py_tp_members, datatype_members},
                                       {Py_tp_methods, datatype_methods},
                                       {Py_tp_getset, datatype_getset},
                                       {Py_tp_dealloc, datatype_dealloc},
                                       BASE_DOC("Datatype"),
                                       {0}};
static PyType_Slot request_slots[] = {{Py_tp_members, request_members},
                                      {Py_tp_methods, request_methods},
                                      {Py_tp_traverse, request_traverse},
                                      {Py_tp_clear, request_clear},
                                      {Py_tp_dealloc, request_dealloc},
                                      BASE_DOC("Request"),
                                      {0}};
static PyType_Slot status_slots[] = {{Py_tp_members, status_members},
                                     {Py_tp_methods, status_methods},
                                     {Py_tp_new, status_new},
                                     {Py_tp_doc, "Status(status=None)" SIGNATURE_END "Base of gormapy.MPI.Status."},
                                     {0}};

/* BOTTOM and the like are integers that show a buffer of nothing, for those who look for one. Calls take none from
   them: see get_buffer in memory.c. */
static int sentinel_getbuffer(PyObject *self, Py_buffer *view, int flags) {
  return PyBuffer_FillInfo(view, NULL, PyLong_AsVoidPtr(self), 0, 0, flags);
}

static PyType_Slot sentinel_slots[] = {{Py_tp_base, &PyLong_Type},
                                       {Py_bf_getbuffer, sentinel_getbuffer},
                                       {Py_tp_doc, "Base of what stands in place of a buffer."},
                                       {0}};

/* address(object) -> where its handle, or its status, is. */
PyObject *address_of(PyObject *self, PyObject *o) {
  const struct {
    PyTypeObject *type;
    size_t offset;
  } all[] = {{HandleType, offsetof(HandleObject, h)},   {CommType, offsetof(CommObject, h)},
             {WinType, offsetof(WinObject, h)},         {MessageType, offsetof(MessageObject, h)},
             {RequestType, offsetof(RequestObject, h)}, {DatatypeType, offsetof(DatatypeObject, h)},
             {StatusType, offsetof(StatusObject, st)}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (PyObject_TypeCheck(o, all[i].type)) return PyLong_FromVoidPtr((char *)o + all[i].offset);
  return PyErr_Format(PyExc_TypeError, "expecting an MPI instance, got %.100s", type_name(o));
}

static void started_dealloc(StartedObject *self) {
  if (self->h && !gm_forked) {
    gm_abandon(self->h, 0);
    keep_until_over(self->h, self->buf);
  } else {
    Py_XDECREF(self->buf);
  }
  deallocate(self);
}

static PyType_Slot started_slots[] = {
    {Py_tp_dealloc, started_dealloc}, {Py_tp_doc, "What a call has started, for finish() or adopt()."}, {0}};

static void holder_dealloc(HolderObject *self) {
  PyBuffer_Release(&self->view);
  deallocate(self);
}

static PyType_Slot holder_slots[] = {{Py_tp_dealloc, holder_dealloc}, {Py_tp_doc, "Keeps a buffer acquired."}, {0}};

/* BASE: Python has a subclass. INSIDE: programs make none. */
enum {
  BASE = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
  INSIDE = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION
};

#define SPEC(Name, name, flags) \
  static PyType_Spec name##_spec = {"gormapy._fast." #Name, sizeof(Name##Object), 0, flags, name##_slots}

SPEC(Handle, handle, BASE);
static PyType_Spec group_spec = {"gormapy._fast.Group", sizeof(HandleObject), 0, BASE, group_slots};
static PyType_Spec file_spec = {"gormapy._fast.File", sizeof(HandleObject), 0, BASE, file_slots};
SPEC(Comm, comm, BASE);
SPEC(Message, message, BASE);
SPEC(Win, win, BASE);
SPEC(Datatype, datatype, BASE);
SPEC(Request, request, BASE | Py_TPFLAGS_HAVE_GC);
SPEC(Status, status, BASE);
SPEC(StatusMemory, status_memory, INSIDE);
SPEC(Started, started, INSIDE);
SPEC(Holder, holder, INSIDE);
static PyType_Spec sentinel_spec = {"gormapy._fast.Sentinel", 0, 0, BASE, sentinel_slots};

PyTypeObject *HandleType, *SentinelType, *StartedType, *CommType, *WinType, *RequestType, *MessageType, *DatatypeType,
    *GroupType, *FileType, *StatusType, *HolderType, *MemoryType, *BufferType, *WordType;

static PyTypeObject *add_type(PyObject *module, PyType_Spec *spec, PyObject *type) {
  if (!type) return NULL;
  Py_INCREF(type); /* it is here for good */
  return PyModule_AddObject(module, strrchr(spec->name, '.') + 1, type) < 0 ? NULL : (PyTypeObject *)type;
}

PyTypeObject *new_type(PyObject *module, PyType_Spec *spec) { return add_type(module, spec, PyType_FromSpec(spec)); }

/* The type of objects that have a handle and methods. */
static PyTypeObject *new_handle_type(PyObject *module, PyType_Spec *spec) {
  return add_type(module, spec, PyType_FromSpecWithBases(spec, (PyObject *)HandleType));
}

/* Adds a second table of methods to a type. */
static int add_methods(PyTypeObject *type, PyMethodDef *methods) {
  for (PyMethodDef *m = methods; m->ml_name; m++) {
    PyObject *method = (m->ml_flags & METH_CLASS ? PyDescr_NewClassMethod : PyDescr_NewMethod)(type, m);
    int failed = method ? PyObject_SetAttrString((PyObject *)type, m->ml_name, method) : -1;
    Py_XDECREF(method);
    if (failed) return -1;
  }
  return 0;
}

/* The hot methods that some communicators alone have, by the class that hot.py gives them to. */
static int ready_of_class(PyObject *module) {
  static const struct {
    const char *name;
    PyMethodDef *methods;
  } classes[] = {{"Intracomm", intracomm_methods}, {"Cartcomm", cartcomm_methods}};
  PyObject *all = PyDict_New();
  if (!all || PyModule_AddObject(module, "OF_CLASS", all) < 0) return -1;
  for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
    PyObject *of_class = PyDict_New();
    int failed = of_class ? PyDict_SetItemString(all, classes[i].name, of_class) : -1;
    Py_XDECREF(of_class);
    for (PyMethodDef *m = classes[i].methods; m->ml_name && !failed; m++) {
      PyObject *method = PyDescr_NewMethod(CommType, m);
      failed = method ? PyDict_SetItemString(of_class, m->ml_name, method) : -1;
      Py_XDECREF(method);
    }
    if (failed) return -1;
  }
  return 0;
}

int ready_types(PyObject *module) {
  const struct {
    PyTypeObject **type;
    PyType_Spec *spec;
  } all[] = {
      {&HandleType, &handle_spec},     {&SentinelType, &sentinel_spec}, {&CommType, &comm_spec},
      {&MessageType, &message_spec},   {&WinType, &win_spec},           {&RequestType, &request_spec},
      {&DatatypeType, &datatype_spec}, {&StatusType, &status_spec},     {&HolderType, &holder_spec},
      {&MemoryType, &memory_spec},     {&BufferType, &buffer_spec},     {&StartedType, &started_spec},
      {&RoomType, &room_spec},         {&WordType, &word_spec},         {&StatusMemoryType, &status_memory_spec}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (!(*all[i].type = new_type(module, all[i].spec))) return -1;
  if (!(GroupType = new_handle_type(module, &group_spec))) return -1;
  if (!(FileType = new_handle_type(module, &file_spec))) return -1;
  if (add_methods(WinType, win_epoch_methods) < 0) return -1;
  if (ready_of_class(module) < 0) return -1;
  if (add_methods(CommType, comm_coll_methods) < 0) return -1;
  if (add_methods(CommType, comm_collv_methods) < 0) return -1;
  if (add_methods(CommType, comm_making_methods) < 0) return -1;
  if (add_methods(CommType, comm_message_methods) < 0) return -1;
  if (add_methods(CommType, comm_group_methods) < 0) return -1;
  if (add_methods(CommType, comm_query_methods) < 0) return -1;
  if (add_methods(DatatypeType, datatype_pack_methods) < 0) return -1;
  if (add_methods(DatatypeType, datatype_query_methods) < 0) return -1;
  if (add_methods(StatusType, status_query_methods) < 0) return -1;
  if (add_methods(RequestType, request_list_methods) < 0) return -1;
  return add_methods(CommType, comm_object_methods);
}
