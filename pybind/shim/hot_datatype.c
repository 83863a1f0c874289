/* The hot methods of Datatype: most constructors, Commit and Free. As in hot_win.c, the Python method of the same name
   gets unusual arguments.

   A datatype that the program frees stays with its handle's index here for a while, and is the result of the next call
   that makes one by the same recipe, with a handle of the next generation. So neither that nor its
   Commit and Free enters Go: they change the datatype's word, as gocore/mpi/typetable.go says. */
#include "raw.h"
#include "_cgo_export.h"

/* A word is generation<<2 | WORD_COMMITTED | WORD_LIVE. */
enum { WORD_LIVE = 1, WORD_COMMITTED = 2, WORD_GENERATION = 2 };
#define GENERATION_MASK 0x3fffffff

PyObject *datatype_class;

/* A datatype that has been freed. */
typedef struct {
  PyObject *recipe;
  gm_type_shape shape;
  int64_t h;
} freed;

enum { MOST_FREED = 16, LONGEST_FREED = 64 * sizeof(int64_t) };
static freed kept[MOST_FREED]; /* the last ones that were freed come first */
static int kept_n;

static uint64_t *word_of(const gm_type_shape *s) { return (uint64_t *)(intptr_t)s->word; }

/* Whether the word is of the handle, and that names a datatype. */
static int names(uint64_t word, int64_t h) {
  return (word & WORD_LIVE) && (int64_t)(word >> WORD_GENERATION) == h >> 32;
}

/* Whether the object stands for a datatype. A predefined one gets its shape when it is first asked. */
static int is_live(DatatypeObject *t) {
  if (!t->shape.word && (t->h <= 0 || gm_shape_of_type(t->h, &t->shape) != 0)) return 0;
  return t->shape.word && names(__atomic_load_n(word_of(&t->shape), __ATOMIC_SEQ_CST), t->h);
}

void datatype_shaped(DatatypeObject *t) {
  uint64_t word = t->shape.word ? __atomic_load_n(word_of(&t->shape), __ATOMIC_SEQ_CST) : 0;
  t->dense = t->shape.one_run && names(word, t->h) && (word & WORD_COMMITTED);
}

int datatype_communicates(const DatatypeObject *t) {
  if (!t->dense || t->h <= 0) return 0;
  return !t->shape.word /* a predefined one */ || datatype_is_committed(t);
}

int datatype_is_committed(const DatatypeObject *t) {
  if (t->h <= 0 || !t->shape.word) return 0;
  uint64_t word = __atomic_load_n(word_of(&t->shape), __ATOMIC_SEQ_CST);
  return names(word, t->h) && (word & WORD_COMMITTED);
}

void datatype_copy(DatatypeObject *t, const DatatypeObject *other) {
  t->h = other->h, t->shape = other->shape, t->dense = other->dense;
  Py_XINCREF(other->recipe);
  Py_XSETREF(t->recipe, other->recipe);
  Py_XINCREF(other->parts);
  Py_XSETREF(t->parts, other->parts);
  Py_XINCREF(other->construction);
  Py_XSETREF(t->construction, other->construction);
}

/* The object that tells how a part of a datatype was made when the program has freed the part. */
static PyObject *part_of(DatatypeObject *old) {
  if (old->h >> 32 == 0) { /* predefined */
    Py_INCREF((PyObject *)old);
    return (PyObject *)old;
  }
  DatatypeObject *t = allocate(Py_TYPE((PyObject *)old));
  if (t) datatype_copy(t, old);
  return (PyObject *)t;
}

/* Has t stand for a datatype that was freed and had been made by this recipe; returns 0 if there is none. */
static int take_freed(DatatypeObject *t, const int64_t *recipe, Py_ssize_t bytes) {
  for (int i = 0; i < kept_n; i++) {
    freed f = kept[i];
    if (PyBytes_GET_SIZE(f.recipe) != bytes || memcmp(PyBytes_AS_STRING(f.recipe), recipe, bytes) != 0) continue;
    uint64_t generation = ((f.h >> 32) + 1) & GENERATION_MASK;
    memmove(kept + i, kept + i + 1, (--kept_n - i) * sizeof *kept);
    t->h = (f.h & 0xffffffff) | (int64_t)(generation << 32), t->shape = f.shape, t->recipe = f.recipe;
    __atomic_store_n(word_of(&f.shape), generation << WORD_GENERATION | WORD_LIVE, __ATOMIC_SEQ_CST);
    return 1;
  }
  return 0;
}

/* Takes a datatype that is freed from its object. */
static void keep_freed(DatatypeObject *t) {
  freed f = {t->recipe, t->shape, t->h};
  if (PyBytes_GET_SIZE(f.recipe) > LONGEST_FREED) {
    gm_drop_type(f.h);
  } else {
    if (kept_n == MOST_FREED) {
      freed last = kept[--kept_n];
      gm_drop_type(last.h);
      Py_DECREF(last.recipe);
    }
    memmove(kept + 1, kept, kept_n++ * sizeof *kept);
    kept[0] = f;
    t->recipe = NULL;
  }
  datatype_forget(t);
  t->h = 0;
}

/* A recipe that is being written. */
typedef struct {
  int64_t *at, few[64];
  Py_ssize_t n;
} recipe;

/* Makes room for n more integers; -1 with an exception. */
static int extend(recipe *r, Py_ssize_t n) {
  if (r->n + n <= (Py_ssize_t)(sizeof r->few / sizeof *r->few)) return 0;
  int64_t *more = PyMem_Realloc(r->at == r->few ? NULL : r->at, (r->n + n) * sizeof *more);
  if (!more) {
    PyErr_NoMemory();
    return -1;
  }
  if (r->at == r->few) memcpy(more, r->few, r->n * sizeof *more);
  r->at = more;
  return 0;
}

/* Adds an integer; -1 for anything else. */
static int add(recipe *r, PyObject *o) {
  if (extend(r, 1) < 0) return -1;
  return parse_int(o, &r->at[r->n++]);
}

/* Adds the integers of a sequence, and sets count or compares it; -1 for what has no integers, or another number of them. */
static int add_list(recipe *r, PyObject *o, Py_ssize_t *count) {
  Py_ssize_t k;
  if (PyBytes_Check(o) || PyByteArray_Check(o)) return -1; /* Python takes them for memory */
  int64_t *list = integer_array(o, &k);
  if (!list) return -1;
  int failed = (*count >= 0 && k != *count) || extend(r, k) < 0;
  if (!failed) memcpy(r->at + r->n, list, k * sizeof *list), r->n += k;
  PyMem_Free(list);
  *count = k;
  return failed ? -1 : 0;
}

/* Whether a new datatype can be made of this one here: it tells how it was made without having been asked. */
static int is_part(DatatypeObject *t) {
  return (PyObject *)Py_TYPE((PyObject *)t) == datatype_class && (t->h >> 32 == 0 || (t->recipe && !t->construction)) &&
         is_live(t);
}

/* Makes the datatype of a recipe and of parts, a list that it takes. */
static PyObject *make(const recipe *r, PyObject *parts) {
  DatatypeObject *t = parts ? allocate((PyTypeObject *)datatype_class) : NULL;
  if (!t) {
    Py_XDECREF(parts);
    return NULL;
  }
  Py_ssize_t bytes = r->n * (Py_ssize_t)sizeof *r->at;
  t->parts = parts;
  if (!take_freed(t, r->at, bytes)) {
    int64_t h = -1;
    t->recipe = PyBytes_FromStringAndSize((const char *)r->at, bytes);
    if (t->recipe && (h = gm_make_type((int64_t)(intptr_t)r->at, r->n, &t->shape)) < 0) raise_code((int)-h);
    if (h < 0) {
      Py_DECREF(t);
      return NULL;
    }
    t->h = h;
  }
  datatype_shaped(t);
  return (PyObject *)t;
}

static PyObject *parts_of(DatatypeObject *old) {
  PyObject *parts = PyList_New(1), *part = parts ? part_of(old) : NULL;
  if (!part) {
    Py_XDECREF(parts);
    return NULL;
  }
  PyList_SET_ITEM(parts, 0, part);
  return parts;
}

/* The arguments of a constructor: integers, which come before the lists or, in a subarray, after them. */
typedef struct {
  int which, kind, integers, lists, required;
  const char *const *names;
} constructor;

static PyObject *construct(HOT, const constructor *c) {
  PyObject *a[4], *made = NULL;
  recipe r = {.at = r.few, .n = 2};
  int fits =
      is_part((DatatypeObject *)self) && !gm_forked && match_args(c->names, c->required, args, n, kwnames, a) == 0;
  int last = c->kind == GM_TYPE_SUBARRAY; /* the integer is the last argument, and has a default */
  Py_ssize_t count = -1;
  for (int i = 0; fits && !last && i < c->integers; i++) fits = add(&r, a[i]) == 0;
  for (int i = 0; fits && i < c->lists; i++) fits = add_list(&r, a[last ? i : c->integers + i], &count) == 0;
  if (fits && last && a[c->lists]) {
    fits = add(&r, a[c->lists]) == 0;
  } else if (fits && last) {
    fits = extend(&r, 1) == 0;
    if (fits) r.at[r.n++] = 0; /* ORDER_C */
  }
  if (fits && is_part((DatatypeObject *)self)) { /* reading the arguments may have freed it */
    r.at[0] = c->kind, r.at[1] = ((DatatypeObject *)self)->h;
    made = make(&r, parts_of((DatatypeObject *)self));
  } else {
    PyErr_Clear(); /* the Python method says it better */
    made = call_fallback(c->which, self, args, n, kwnames);
  }
  if (r.at != r.few) PyMem_Free(r.at);
  return made;
}

static const char *const contiguous_names[] = {"count", NULL};
static const char *const vector_names[] = {"count", "blocklength", "stride", NULL};
static const char *const resized_names[] = {"lb", "extent", NULL};
static const char *const indexed_names[] = {"blocklengths", "displacements", NULL};
static const char *const block_names[] = {"blocklength", "displacements", NULL};
static const char *const subarray_names[] = {"sizes", "subsizes", "starts", "order", NULL};

/* DEFINE(create_vector, …) defines the method create_vector. */
#define DEFINE(name, ...)                         \
  static PyObject *name(HOT) {                    \
    static const constructor c = {__VA_ARGS__};   \
    return construct(self, args, n, kwnames, &c); \
  }

DEFINE(create_contiguous, CALL_CREATE_CONTIGUOUS, GM_TYPE_CONTIGUOUS, 1, 0, 1, contiguous_names)
DEFINE(create_vector, CALL_CREATE_VECTOR, GM_TYPE_VECTOR, 3, 0, 3, vector_names)
DEFINE(create_hvector, CALL_CREATE_HVECTOR, GM_TYPE_HVECTOR, 3, 0, 3, vector_names)
DEFINE(create_resized, CALL_CREATE_RESIZED, GM_TYPE_RESIZED, 2, 0, 2, resized_names)
DEFINE(create_indexed, CALL_CREATE_INDEXED, GM_TYPE_INDEXED, 0, 2, 2, indexed_names)
DEFINE(create_hindexed, CALL_CREATE_HINDEXED, GM_TYPE_HINDEXED, 0, 2, 2, indexed_names)
DEFINE(create_indexed_block, CALL_CREATE_INDEXED_BLOCK, GM_TYPE_INDEXED_BLOCK, 1, 1, 2, block_names)
DEFINE(create_hindexed_block, CALL_CREATE_HINDEXED_BLOCK, GM_TYPE_HINDEXED_BLOCK, 1, 1, 2, block_names)
DEFINE(create_subarray, CALL_CREATE_SUBARRAY, GM_TYPE_SUBARRAY, 1, 3, 3, subarray_names)

/* The parts of a struct, of n datatypes, whose handles are added to the recipe; NULL, maybe with an exception, if they are
   anything else. */
static PyObject *struct_parts(recipe *r, PyObject *datatypes, Py_ssize_t n) {
  PyObject *list = PySequence_List(datatypes);
  int fits = list && PyList_GET_SIZE(list) == n && extend(r, n) == 0;
  for (Py_ssize_t i = 0; fits && i < n; i++) {
    PyObject *part = PyList_GET_ITEM(list, i);
    if (!(fits = PyObject_TypeCheck(part, DatatypeType) && is_part((DatatypeObject *)part))) break;
    r->at[r->n++] = ((DatatypeObject *)part)->h;
    PyObject *told = part_of((DatatypeObject *)part);
    fits = told && PyList_SetItem(list, i, told) == 0;
  }
  if (!fits) Py_CLEAR(list);
  return list;
}

static PyObject *create_struct(HOT) {
  static const char *const struct_names[] = {"blocklengths", "displacements", "datatypes", NULL};
  PyObject *a[3], *made = NULL, *parts = NULL;
  recipe r = {.at = r.few, .n = 1};
  Py_ssize_t count = -1;
  r.few[0] = GM_TYPE_STRUCT;
  if (self == datatype_class && !gm_forked && match_args(struct_names, 3, args, n, kwnames, a) == 0 &&
      (PyList_Check(a[2]) || PyTuple_Check(a[2])) && add_list(&r, a[0], &count) == 0 && add_list(&r, a[1], &count) == 0)
    parts = struct_parts(&r, a[2], count);
  if (parts) {
    made = make(&r, parts);
  } else {
    PyErr_Clear();
    made = call_fallback(CALL_CREATE_STRUCT, self, args, n, kwnames);
  }
  if (r.at != r.few) PyMem_Free(r.at);
  return made;
}

static PyObject *commit(HOT) {
  DatatypeObject *t = (DatatypeObject *)self;
  if (n || kwnames || gm_forked || !is_live(t)) FALL_BACK(CALL_COMMIT);
  __atomic_fetch_or(word_of(&t->shape), WORD_COMMITTED, __ATOMIC_SEQ_CST); /* with the GIL, so that nobody frees it */
  datatype_shaped(t);
  Py_INCREF(self);
  return self;
}

static PyObject *free_datatype(HOT) {
  DatatypeObject *t = (DatatypeObject *)self;
  if (n || kwnames || gm_forked || !t->recipe || t->construction || !is_live(t)) FALL_BACK(CALL_FREE_TYPE);
  int registered = is_registered("Datatype", t->h, REGISTRY_ATTRIBUTES);
  if (registered < 0) return NULL;
  if (registered) FALL_BACK(CALL_FREE_TYPE);
  uint64_t word = __atomic_load_n(word_of(&t->shape), __ATOMIC_SEQ_CST);
  do {
    if (!names(word, t->h)) FALL_BACK(CALL_FREE_TYPE);
  } while (!__atomic_compare_exchange_n(word_of(&t->shape), &word, word & ~(uint64_t)(WORD_LIVE | WORD_COMMITTED), 0,
                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
  keep_freed(t);
  Py_RETURN_NONE;
}

PyMethodDef datatype_methods[] = {
    HOT_METHOD("Create_contiguous", create_contiguous, "($self, count)"),
    HOT_METHOD("Create_vector", create_vector, "($self, count, blocklength, stride)"),
    HOT_METHOD("Create_hvector", create_hvector, "($self, count, blocklength, stride)"),
    HOT_METHOD("Create_resized", create_resized, "($self, lb, extent)"),
    HOT_METHOD("Create_indexed", create_indexed, "($self, blocklengths, displacements)"),
    HOT_METHOD("Create_hindexed", create_hindexed, "($self, blocklengths, displacements)"),
    HOT_METHOD("Create_indexed_block", create_indexed_block, "($self, blocklength, displacements)"),
    HOT_METHOD("Create_hindexed_block", create_hindexed_block, "($self, blocklength, displacements)"),
    HOT_METHOD("Create_subarray", create_subarray, "($self, sizes, subsizes, starts, order=0)"),
    HOT_CLASS_METHOD("Create_struct", create_struct, "($type, blocklengths, displacements, datatypes)"),
    HOT_METHOD("Commit", commit, "($self)"),
    HOT_METHOD("Free", free_datatype, "($self)"),
    {0}};
