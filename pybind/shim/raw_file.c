/* The raw calls of files that open one, and that touch a program's memory. All others only begin something, in
   pybind/core. */
#include "raw.h"
#include "_cgo_export.h"

/* file_io(kind, file, offset, address, count, datatype, holder) */
static PyObject *raw_file_io(ARGS) {
  int64_t a[6], req = 0;
  int code;
  if (n != 7) return PyErr_Format(PyExc_TypeError, "file_io takes 7 arguments");
  if (integers("file_io kind file offset buffer count datatype", args, 6, 6, a) < 0) return NULL;
  if (TRACING) trace_note_bytes(trace_bytes(a[5], a[4]));
  WITHOUT_GIL(code = gm_file_io((int)a[0], a[1], a[2], a[3], a[4], a[5], &req));
  return started_or(code, req, args[6]);
}

/* file_open(communicator, address and bytes of the name, amode, hints…) */
DEFINE_MAKE(file_open, 8, "", NOTE_COMM(a[0], TRACE_NO_PEER, -1, 0),
            gm_file_open(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], &req))

PyMethodDef raw_file_methods[] = {F(file_open), F(file_io), {0}};
