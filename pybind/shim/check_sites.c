/* The numbers of the program's lines, for mpiexec --check: found without Python's help where gormapy/check/sites.py has told of them. A
   line has a number for each call that it makes, and for loads and stores. */
#include "check.h"
#include "raw.h"

typedef struct {
  PyCodeObject *code; /* Python keeps it alive */
  int line, call;
  uint32_t number;
} site;

enum { SITES = 8192, RECENT = 256 };
static site sites[SITES];
static uint32_t count;

/* The same by instruction: Python finds the number of a line by going through the function. */
static struct {
  PyCodeObject *code;
  long at;
  int call;
  uint32_t number;
} recent[RECENT];

static site *find(PyCodeObject *code, int line, int call) {
  uint64_t i = ((uintptr_t)code >> 4) * 31 + (uint64_t)line * 7 + (uint64_t)call;
  for (i %= SITES; sites[i].code; i = (i + 1) % SITES)
    if (sites[i].code == code && sites[i].line == line && sites[i].call == call) break;
  return &sites[i];
}

uint32_t check_here(int call) {
  static PyObject *f_lasti;
  PyFrameObject *frame = PyEval_GetFrame();
  if (!frame || (!f_lasti && !(f_lasti = PyUnicode_InternFromString("f_lasti")))) return 0;
  PyObject *instruction = PyObject_GetAttr((PyObject *)frame, f_lasti);
  if (!instruction) {
    PyErr_Clear();
    return 0;
  }
  long at = PyLong_AsLong(instruction);
  Py_DECREF(instruction);
  PyCodeObject *code = PyFrame_GetCode(frame);
  size_t i = (((uintptr_t)code >> 4) + (size_t)at) % RECENT;
  uint32_t number = recent[i].number;
  if (recent[i].code != code || recent[i].at != at || recent[i].call != call) {
    number = find(code, PyFrame_GetLineNumber(frame), call)->number;
    if (number) recent[i].code = code, recent[i].at = at, recent[i].call = call, recent[i].number = number;
  }
  Py_DECREF(code);
  return number;
}

/* check_site(code, line, name, number): the number of a line that makes a call; load and store are calls, too. The caller keeps the code
   alive. */
static PyObject *check_site(PyObject *self, PyObject *args) {
  PyObject *code;
  const char *name;
  int line, call;
  unsigned number;
  if (!PyArg_ParseTuple(args, "OisI", &code, &line, &name, &number)) return NULL;
  if (strcmp(name, "load") == 0)
    call = CHECK_LOAD;
  else if (strcmp(name, "store") == 0)
    call = CHECK_STORE;
  else if ((call = checked_call(name)) < 0)
    Py_RETURN_NONE;
  site *s = find((PyCodeObject *)code, line, call);
  if (!s->code && count++ < SITES / 2) *s = (site){(PyCodeObject *)code, line, call, number};
  Py_RETURN_NONE;
}

PyMethodDef check_site_methods[] = {{"check_site", check_site, METH_VARARGS, NULL}, {0}};
