/* Pack and Unpack of datatypes whose items lie one after another, which are copies. As in hot_win.c, the Python
   method of the same name gets the others, and what has no room.

   They are called with the GIL held. */
#include "raw.h"
#include "_cgo_export.h"

/* The bytes of an item; 0 if items do not follow each other without a gap, or may not be communicated. */
static int64_t item_bytes(const DatatypeObject *t) {
  return datatype_communicates(t) && t->shape.extent == t->shape.size && t->shape.lb == 0 && t->shape.true_lb == 0
             ? t->shape.size
             : 0;
}

/* Copies between items and packed data at a position: whole items, as many as there are on both sides, in Pack all of
   them. Returns the position behind them, or -1 if Python is to do it, or with an exception. */
static int64_t copy_items(const DatatypeObject *t, int pack, PyObject *items, PyObject *packed, int64_t position) {
  int64_t size = item_bytes(t), end = -1;
  Py_buffer i, p;
  if (size <= 0 || position < 0 || items == Py_None || packed == Py_None || !PyObject_CheckBuffer(items) ||
      !PyObject_CheckBuffer(packed))
    return -1;
  if (get_buffer(items, &i, PyBUF_ANY_CONTIGUOUS | (pack ? 0 : PyBUF_WRITABLE)) < 0) {
    PyErr_Clear();
    return -1;
  }
  if (get_buffer(packed, &p, PyBUF_ANY_CONTIGUOUS | (pack ? PyBUF_WRITABLE : 0)) < 0) {
    PyErr_Clear();
  } else {
    int64_t n = i.len / size * size, left = p.len - position;
    if (!pack && left >= 0 && left < n) n = left / size * size;
    if (n <= left) {
      char *there = (char *)p.buf + position;
      end = position + n;
      if (program_copy(pack ? there : i.buf, pack ? i.buf : there, n)) {
        raise_code(gm_faulted(guard_address()));
        end = -1;
      }
    }
    PyBuffer_Release(&p);
  }
  PyBuffer_Release(&i);
  return end;
}

static PyObject *datatype_pack(HOT) {
  static const char *const names[] = {"inbuf", "outbuf", "position", "comm", NULL};
  PyObject *a[4];
  int64_t position, end;
  if (gm_forked || match_args(names, 4, args, n, kwnames, a) < 0 || parse_int(a[2], &position) < 0 ||
      (end = copy_items((DatatypeObject *)self, 1, a[0], a[1], position)) < 0)
    FALL_BACK(CALL_PACK);
  return PyLong_FromLongLong(end);
}

static PyObject *datatype_unpack(HOT) {
  static const char *const names[] = {"inbuf", "position", "outbuf", "comm", NULL};
  PyObject *a[4];
  int64_t position, end;
  if (gm_forked || match_args(names, 4, args, n, kwnames, a) < 0 || parse_int(a[1], &position) < 0 ||
      (end = copy_items((DatatypeObject *)self, 0, a[2], a[0], position)) < 0)
    FALL_BACK(CALL_UNPACK);
  return PyLong_FromLongLong(end);
}

PyMethodDef datatype_pack_methods[] = {HOT_METHOD("Pack", datatype_pack, "($self, inbuf, outbuf, position, comm)"),
                                       HOT_METHOD("Unpack", datatype_unpack, "($self, inbuf, position, outbuf, comm)"),
                                       {0}};
