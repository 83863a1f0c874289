/* Arrays of NumPy, read where they are. NumPy answers PyObject_GetBuffer with strings and lists that it has to make,
   which takes longer than a put.

   The layout of an array and the first members of its dtype are part of NumPy's ABI, the same in its versions 1 and 2
   (PyArrayObject_fields and PyArray_Descr in numpy/ndarraytypes.h). check_layout tries it on arrays of all kinds first: if
   any of them reads differently by PyObject_GetBuffer, no array is read here. */
#include "ndarray.h"

#include <string.h>

typedef struct {
  PyObject_HEAD
  PyTypeObject *scalar;
  char kind, letter, order, unused;
  int number; /* of NPY_TYPES */
} dtype;

typedef struct {
  PyObject_HEAD
  char *data;
  int dimensions;
  Py_ssize_t *shape, *strides;
  PyObject *base;
  dtype *dtype;
  unsigned flags;
} ndarray;

/* numpy/ndarraytypes.h: NPY_ARRAY_C_CONTIGUOUS and so on. */
static const unsigned C_CONTIGUOUS = 1, F_CONTIGUOUS = 2, ALIGNED = 0x100, WRITEABLE = 0x400, WARN_ON_WRITE = 1u << 31;

/* By NPY_TYPES: the format of the buffer protocol, and NumPy's own dtype. Another one of the same number may have fields or
   the other order of bytes. */
static struct {
  const char *format;
  Py_ssize_t size;
  dtype *own;
} numbers[] = {
    {"?", 1},
    {"b", sizeof(char)},
    {"B", sizeof(char)},
    {"h", sizeof(short)},
    {"H", sizeof(short)},
    {"i", sizeof(int)},
    {"I", sizeof(int)},
    {"l", sizeof(long)},
    {"L", sizeof(long)},
    {"q", sizeof(long long)},
    {"Q", sizeof(long long)},
    {"f", sizeof(float)},
    {"d", sizeof(double)},
    {"g", sizeof(long double)},
    {"Zf", 2 * sizeof(float)},
    {"Zd", 2 * sizeof(double)},
    {"Zg", 2 * sizeof(long double)},
    [23] = {"e", 2},
};

/* Reads o, an array, and returns 0 if it is of another kind than these. The view has no shape. */
static int read_array(PyObject *o, Py_buffer *view, int flags) {
  const ndarray *a = (const ndarray *)o;
  const dtype *t = a->dtype;
  if (t->number < 0 || t->number >= (int)(sizeof numbers / sizeof *numbers) || t != numbers[t->number].own) return 0;
  int any = (flags & PyBUF_ANY_CONTIGUOUS) == PyBUF_ANY_CONTIGUOUS;
  if (!(a->flags & (any ? C_CONTIGUOUS | F_CONTIGUOUS : C_CONTIGUOUS)) || !(a->flags & ALIGNED) ||
      (a->flags & WARN_ON_WRITE) || ((flags & PyBUF_WRITABLE) && !(a->flags & WRITEABLE)))
    return 0;
  Py_ssize_t n = numbers[t->number].size;
  for (int i = 0; i < a->dimensions; i++) n *= a->shape[i];
  *view = (Py_buffer){.buf = a->data,
                      .obj = Py_NewRef(o),
                      .len = n,
                      .itemsize = numbers[t->number].size,
                      .readonly = !(a->flags & WRITEABLE),
                      .ndim = 1,
                      .format = flags & PyBUF_FORMAT ? (char *)numbers[t->number].format : NULL};
  return 1;
}

/* Keeps the dtype of an array as NumPy's own of its number. Returns 0 if the array does not have it where the layout says. */
static int learn(PyObject *o) {
  PyObject *type = PyObject_GetAttrString(o, "dtype"), *number = type ? PyObject_GetAttrString(type, "num") : NULL;
  long n = number ? PyLong_AsLong(number) : -1;
  const ndarray *a = (const ndarray *)o;
  int right = n >= 0 && n < (long)(sizeof numbers / sizeof *numbers) && numbers[n].format &&
              a->dtype == (dtype *)type && a->dtype->number == n;
  if (right && !numbers[n].own) numbers[n].own = (dtype *)Py_NewRef(type); /* for good */
  Py_XDECREF(type), Py_XDECREF(number);
  return right;
}

/* Takes the reference to a sample. Reports whether it is an array, and read_array gives what NumPy does, or leaves it to
   NumPy if left is set. */
static int read_right(PyObject *sample, PyTypeObject *class, int left) {
  enum { FLAGS = PyBUF_ANY_CONTIGUOUS | PyBUF_FORMAT };
  Py_buffer ours, theirs;
  int right = sample && Py_TYPE(sample) == class && (left || learn(sample));
  if (right && read_array(sample, &ours, FLAGS)) {
    right = !left && PyObject_GetBuffer(sample, &theirs, FLAGS) == 0;
    if (right) {
      right = ours.buf == theirs.buf && ours.len == theirs.len && ours.itemsize == theirs.itemsize &&
              ours.readonly == theirs.readonly && strcmp(ours.format, theirs.format) == 0;
      PyBuffer_Release(&theirs);
    }
    PyBuffer_Release(&ours);
  } else if (right) {
    right = left;
  }
  Py_XDECREF(sample);
  return right;
}

/* Every second item of an array of 9. */
static PyObject *spread(PyObject *zeros) {
  PyObject *all = PyObject_CallFunction(zeros, "i", 9), *step = PyLong_FromLong(2);
  PyObject *slice = step ? PySlice_New(NULL, NULL, step) : NULL,
           *a = all && slice ? PyObject_GetItem(all, slice) : NULL;
  Py_XDECREF(all), Py_XDECREF(step), Py_XDECREF(slice);
  return a;
}

/* Reports whether arrays can be read. It returns 0 with an exception if there is no memory for the samples.

   No line of Python may run here, since a signal's handler could, and its exception would be lost: a function that a program
   has put in place of NumPy's is not called, and dtypes with a comma, which NumPy makes in Python, are left out. */
static int check_layout(PyObject *numpy, PyTypeObject *class) {
  PyObject *names = PyModule_GetDict(numpy);
  PyObject *zeros = PyDict_GetItemString(names, "zeros"), *frombuffer = PyDict_GetItemString(names, "frombuffer");
  if (!zeros || !PyCFunction_Check(zeros) || !frombuffer || !PyCFunction_Check(frombuffer)) return 0;
  if (PyType_GetFlags(class) & Py_TPFLAGS_HEAPTYPE) return 0; /* made by Python: not NumPy's own */
  PyObject *size = PyObject_GetAttrString((PyObject *)class, "__basicsize__");
  int fits = size && PyLong_AsSize_t(size) >= sizeof(ndarray);
  Py_XDECREF(size);
  if (!fits) return 0;

  static const char *const read[] = {"?", "b", "B", "h", "H", "i", "I", "l", "L",
                                     "q", "Q", "f", "d", "g", "F", "D", "G", "e"};
  for (size_t i = 0; i < sizeof read / sizeof *read; i++)
    if (!read_right(PyObject_CallFunction(zeros, "(ii)s", 3, 5, read[i]), class, 0) ||
        !read_right(PyObject_CallFunction(zeros, "(ii)ss", 3, 5, read[i], "F"), class, 0) ||
        !read_right(PyObject_CallFunction(zeros, "()s", read[i]), class, 0) ||
        !read_right(PyObject_CallFunction(zeros, "is", 0, read[i]), class, 0))
      return 0;
  static const char *const left[] = {">i4", ">f8", ">c16", "S8", "U2", "V16", "M8[s]", "m8[s]", "O"};
  for (size_t i = 0; i < sizeof left / sizeof *left; i++)
    if (!read_right(PyObject_CallFunction(zeros, "is", 4, left[i]), class, 1)) return 0;

  static const char bytes[] = "which can't be written";
  Py_ssize_t n = sizeof bytes;
  return read_right(spread(zeros), class, 1) &&
         read_right(PyObject_CallFunction(frombuffer, "y#s", bytes, n, "B"), class, 0) &&
         read_right(PyObject_CallFunction(frombuffer, "y#snn", bytes, n, "i4", (Py_ssize_t)2, (Py_ssize_t)1), class, 1);
}

int ndarray_buffer(PyObject *o, Py_buffer *view, int flags) {
  static PyTypeObject *arrays; /* NumPy's class, once the layout has proved right */
  static PyTypeObject *other;  /* a class that is not, looked at last */
  static int given_up;
  PyTypeObject *class = Py_TYPE(o);
  if (class == arrays) return read_array(o, view, flags);
  if (arrays || class == other || given_up) return 0;
  /* The modules' dictionaries have no __getattr__, which could run Python. */
  PyObject *numpy = PyDict_GetItemString(PyImport_GetModuleDict(), "numpy");
  PyObject *known = numpy && PyModule_Check(numpy) ? PyDict_GetItemString(PyModule_GetDict(numpy), "ndarray") : NULL;
  if (known != (PyObject *)class) {
    if (known || !numpy) other = class;
    return 0;
  }
  if (!check_layout(numpy, class)) {
    if (!PyErr_Occurred()) given_up = 1;
    PyErr_Clear(); /* no memory: tried again */
    return 0;
  }
  arrays = (PyTypeObject *)Py_NewRef((PyObject *)class);
  return read_array(o, view, flags);
}
