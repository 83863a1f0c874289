/* Rooms: memory for objects that are received before anybody knows how large they are. A room is much larger than most
   objects, but its pages are touched only when data arrives in them, and the room of a short object is used again: a new
   one costs more than the message.

   As long as anything shows a room, such as a receive that somebody has given up, it is in use. */
#include "shim.h"

#include <sys/mman.h>

enum { ROOM = 16 << 20, SHORT = 64 << 10, MOST_SPARE = 64 };

/* Up to so many bytes a copy costs less than a memoryview, which is two objects. */
enum { COPIED = 2 << 10 };

typedef struct {
  PyObject_HEAD
  char *at;
  int64_t size, used; /* used: of this many bytes it is known that no more have been touched; else it is size */
} RoomObject;

/* Of size ROOM, with SHORT touched bytes at most. The GIL guards them. */
static char *spare[MOST_SPARE];
static int spares;

PyTypeObject *RoomType;

PyObject *new_room(int64_t size) {
  RoomObject *room = allocate(RoomType);
  if (!room) return NULL;
  room->size = room->used = size < ROOM ? ROOM : size;
  if (room->size == ROOM && spares) {
    room->at = spare[--spares];
    return (PyObject *)room;
  }
  void *at = mmap(NULL, (size_t)room->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at != MAP_FAILED) {
    room->at = at;
    return (PyObject *)room;
  }
  Py_DECREF((PyObject *)room);
  return PyErr_NoMemory();
}

PyObject *room_holds(PyObject *room, int64_t bytes) {
  RoomObject *r = (RoomObject *)room;
  r->used = bytes;
  if (bytes <= COPIED) return PyBytes_FromStringAndSize(r->at, (Py_ssize_t)bytes);
  return PyMemoryView_FromObject(room);
}

char *room_memory(PyObject *room, int64_t *size) {
  *size = ((RoomObject *)room)->size;
  return ((RoomObject *)room)->at;
}

static void room_dealloc(PyObject *self) {
  RoomObject *room = (RoomObject *)self;
  if (room->at && room->size == ROOM && room->used <= SHORT && spares < MOST_SPARE)
    spare[spares++] = room->at;
  else if (room->at)
    munmap(room->at, (size_t)room->size);
  deallocate(self);
}

static int room_getbuffer(PyObject *self, Py_buffer *view, int flags) {
  RoomObject *room = (RoomObject *)self;
  return PyBuffer_FillInfo(view, self, room->at, room->used, 0, flags);
}

/* holds(bytes) -> memoryview of these first bytes, or a copy: no more have been received. */
static PyObject *raw_holds(PyObject *self, PyObject *bytes) {
  int64_t n = PyLong_AsLongLong(bytes);
  if (n == -1 && PyErr_Occurred()) return NULL;
  if (n < 0 || n > ((RoomObject *)self)->size) return PyErr_Format(PyExc_ValueError, "holds: the room is smaller");
  return room_holds(self, n);
}

static PyMethodDef room_methods[] = {
    {"holds", raw_holds, METH_O, "holds(bytes)\n\nReturn the first bytes, or a memoryview of them."}, {0}};
static PyType_Slot room_slots[] = {{Py_tp_methods, room_methods},
                                   {Py_bf_getbuffer, room_getbuffer},
                                   {Py_tp_dealloc, room_dealloc},
                                   {Py_tp_doc, "Memory that an object arrives in."},
                                   {0}};
PyType_Spec room_spec = {"gormapy._fast.Room", sizeof(RoomObject), 0,
                         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, room_slots};

/* room(bytes) -> memory of so many bytes, or more. */
PyObject *raw_room(PyObject *self, PyObject *bytes) {
  int64_t n = PyLong_AsLongLong(bytes);
  if (n == -1 && PyErr_Occurred()) return NULL;
  return new_room(n);
}
