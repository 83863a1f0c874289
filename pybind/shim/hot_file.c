/* The hot methods of File: reads and writes that block, and the file pointer. As in hot_win.c, the usual arguments
   are read here, and the Python method of the same name gets the others.

   They are called with the GIL held. */
#include "raw.h"
#include "_cgo_export.h"

static PyObject *access_file(HOT, int which, int kind) {
  static const char *const with_offset[] = {"offset", "buf", "status", NULL}, *const without[] = {"buf", "status",
                                                                                                  NULL};
  int first = kind & (GM_FILE_OWN | GM_FILE_SHARED) ? 0 : 1; /* where the buffer is */
  PyObject *a[3];
  spec s;
  gm_status own, *st = &own;
  int64_t offset = 0, h = ((HandleObject *)self)->h;
  int code;
  if (gm_forked || h == 0 || match_args(first ? with_offset : without, first + 1, args, n, kwnames, a) < 0 ||
      (first && parse_int(a[0], &offset) < 0))
    FALL_BACK(which);
  PyObject *status = a[first + 1];
  if (status && status != Py_None) {
    if (!PyObject_TypeCheck(status, StatusType)) FALL_BACK(which);
    st = &((StatusObject *)status)->st;
  }
  if (parse_spec(a[first], !(kind & GM_FILE_WRITE), &s) < 0) FALL_BACK(which);
  if (TRACING) trace_note_bytes(s.count * s.size);
  int64_t address = (int64_t)(intptr_t)s.view.buf, req = 0;
  BLOCKING(code, req, st, gm_file_access(kind, h, offset, address, s.count, s.type, st, &req));
  release_spec(code, req, &s);
  return none_or(code);
}

/* DEFINE(read, …) defines traced_file_read. */
#define DEFINE(name, which, kind)                                                                \
  static PyObject *file_##name(HOT) { return access_file(self, args, n, kwnames, which, kind); } \
  TRACED(file_##name, which)

DEFINE(read_at, CALL_READ_AT, 0)
DEFINE(write_at, CALL_WRITE_AT, GM_FILE_WRITE)
DEFINE(read, CALL_READ, GM_FILE_OWN)
DEFINE(write, CALL_WRITE, GM_FILE_OWN | GM_FILE_WRITE)
DEFINE(read_at_all, CALL_READ_AT_ALL, GM_FILE_ALL)
DEFINE(write_at_all, CALL_WRITE_AT_ALL, GM_FILE_ALL | GM_FILE_WRITE)
DEFINE(read_all, CALL_READ_ALL, GM_FILE_OWN | GM_FILE_ALL)
DEFINE(write_all, CALL_WRITE_ALL, GM_FILE_OWN | GM_FILE_ALL | GM_FILE_WRITE)
DEFINE(read_ordered, CALL_READ_ORDERED, GM_FILE_SHARED | GM_FILE_ALL)
DEFINE(write_ordered, CALL_WRITE_ORDERED, GM_FILE_SHARED | GM_FILE_ALL | GM_FILE_WRITE)
DEFINE(read_shared, CALL_READ_SHARED, GM_FILE_SHARED)
DEFINE(write_shared, CALL_WRITE_SHARED, GM_FILE_SHARED | GM_FILE_WRITE)

static PyObject *file_seek(HOT) {
  static const char *const names[] = {"offset", "whence", NULL};
  PyObject *a[2];
  int64_t offset, whence = GM_SEEK_SET, h = ((HandleObject *)self)->h;
  if (gm_forked || h == 0 || match_args(names, 1, args, n, kwnames, a) < 0 || parse_int(a[0], &offset) < 0 ||
      (a[1] && parse_int(a[1], &whence) < 0) || gm_file_seek(h, offset, whence) < 0)
    FALL_BACK(CALL_SEEK);
  Py_RETURN_NONE;
}

TRACED(file_seek, CALL_SEEK)

static PyObject *file_get_position(HOT) {
  int64_t h = ((HandleObject *)self)->h, position = -1;
  if (gm_forked || h == 0 || n || kwnames || (position = gm_file_position(h)) < 0) FALL_BACK(CALL_GET_POSITION);
  return PyLong_FromLongLong(position);
}

PyMethodDef file_methods[] = {HOT_METHOD("Read_at", traced_file_read_at, "($self, offset, buf, status=None)"),
                              HOT_METHOD("Write_at", traced_file_write_at, "($self, offset, buf, status=None)"),
                              HOT_METHOD("Read", traced_file_read, "($self, buf, status=None)"),
                              HOT_METHOD("Write", traced_file_write, "($self, buf, status=None)"),
                              HOT_METHOD("Read_at_all", traced_file_read_at_all, "($self, offset, buf, status=None)"),
                              HOT_METHOD("Write_at_all", traced_file_write_at_all, "($self, offset, buf, status=None)"),
                              HOT_METHOD("Read_all", traced_file_read_all, "($self, buf, status=None)"),
                              HOT_METHOD("Write_all", traced_file_write_all, "($self, buf, status=None)"),
                              HOT_METHOD("Read_ordered", traced_file_read_ordered, "($self, buf, status=None)"),
                              HOT_METHOD("Write_ordered", traced_file_write_ordered, "($self, buf, status=None)"),
                              HOT_METHOD("Read_shared", traced_file_read_shared, "($self, buf, status=None)"),
                              HOT_METHOD("Write_shared", traced_file_write_shared, "($self, buf, status=None)"),
                              HOT_METHOD("Seek", traced_file_seek, "($self, offset, whence=600)"),
                              HOT_METHOD("Get_position", file_get_position, "($self)"),
                              {0}};
