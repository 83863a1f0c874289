/* Memory that Python shows by the buffer protocol: Memory, which belongs to the core, and Buffer, the base of
   gormapy.MPI.buffer, which belongs to whoever its owner is. */
#include "ndarray.h"
#include "_cgo_export.h"

/* Memory is memory of the core's that Python shows: part of a window's segment
   or what Alloc_mem made. It stays mapped as long as anything shows it. */
typedef struct {
  PyObject_HEAD
  int64_t held, addr, bytes;
} MemoryObject;

static void memory_dealloc(MemoryObject *self) {
  if (self->held && !gm_forked) gm_release(self->held);
  deallocate(self);
}

static int memory_getbuffer(MemoryObject *self, Py_buffer *view, int flags) {
  return PyBuffer_FillInfo(view, (PyObject *)self, (void *)(intptr_t)self->addr, self->bytes, 0, flags);
}

static PyObject *memory_new(PyTypeObject *type, PyObject *args, PyObject *kw) {
  long long held, addr, bytes;
  if (!PyArg_ParseTuple(args, "LLL", &held, &addr, &bytes)) return NULL;
  MemoryObject *m = allocate(type);
  if (m) m->held = held, m->addr = addr, m->bytes = bytes;
  return (PyObject *)m;
}

static PyMemberDef memory_members[] = {{"address", T_LONGLONG, offsetof(MemoryObject, addr), READONLY, "address"},
                                       {"nbytes", T_LONGLONG, offsetof(MemoryObject, bytes), READONLY, "bytes"},
                                       {0}};

static PyType_Slot memory_slots[] = {{Py_tp_members, memory_members},
                                     {Py_bf_getbuffer, memory_getbuffer},
                                     {Py_tp_new, memory_new},
                                     {Py_tp_dealloc, memory_dealloc},
                                     {Py_tp_doc, "Memory of the core: Memory(hold, address, nbytes)."},
                                     {0}};
PyType_Spec memory_spec = {"gormapy._fast.Memory", sizeof(MemoryObject), 0, Py_TPFLAGS_DEFAULT, memory_slots};

static int buffer_fill(BufferObject *self, Py_buffer *view, int flags) {
  /* The view holds the owner, not this object: release() may come before the
     view's end. It is wrapped, so that releasing the view does not call the
     owner's own release function. */
  PyObject *exporter = PyTuple_Pack(1, self->owner ? self->owner : Py_None);
  if (!exporter) return -1;
  static char empty;
  void *at = self->bytes ? (void *)(intptr_t)self->addr : &empty;
  int rc = PyBuffer_FillInfo(view, exporter, at, self->bytes, self->readonly, flags);
  Py_DECREF(exporter);
  return rc;
}

static int buffer_getbuffer(BufferObject *self, Py_buffer *view, int flags) {
  if (!self->device) return buffer_fill(self, view, flags);
  PyErr_SetString(PyExc_BufferError,
                  "buffer: the memory is that of a device; calls of MPI take it, programs can't read it");
  return -1;
}

int get_buffer(PyObject *o, Py_buffer *view, int flags) {
  if (ndarray_buffer(o, view, flags)) return 0;
  if (PyObject_TypeCheck(o, BufferType)) return buffer_fill((BufferObject *)o, view, flags);
  if (!PyObject_TypeCheck(o, SentinelType)) return PyObject_GetBuffer(o, view, flags);
  PyErr_Format(PyExc_TypeError, "a bytes-like object is required, not '%.100s'", type_name(o));
  return -1;
}

/* Views need no release, since their exporter is what holds the memory. But without this slot np.frombuffer keeps only the
   object that it is given, which is no holder: a buffer can be released, and a window freed. */
void nothing_to_release(PyObject *self, Py_buffer *view) {}

static void buffer_dealloc(BufferObject *self) {
  Py_CLEAR(self->owner);
  deallocate(self);
}

static PyMemberDef buffer_members[] = {{"_addr", T_LONGLONG, offsetof(BufferObject, addr), 0, "address"},
                                       {"_nbytes", T_LONGLONG, offsetof(BufferObject, bytes), 0, "bytes"},
                                       {"_readonly", T_INT, offsetof(BufferObject, readonly), 0, "read-only"},
                                       {"_device", T_INT, offsetof(BufferObject, device), 0, "a device's"},
                                       {"_obj", T_OBJECT, offsetof(BufferObject, owner), 0, "owner"},
                                       {0}};

static PyType_Slot buffer_slots[] = {{Py_tp_members, buffer_members},
                                     {Py_bf_getbuffer, buffer_getbuffer},
                                     {Py_bf_releasebuffer, nothing_to_release},
                                     {Py_tp_dealloc, buffer_dealloc},
                                     {Py_tp_doc, "Base of gormapy.MPI.buffer."},
                                     {0}};
PyType_Spec buffer_spec = {"gormapy._fast.Buffer", sizeof(BufferObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                           buffer_slots};
