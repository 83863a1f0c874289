/* What the C files of the extension share: the base types of the classes in gormapy.MPI, and helpers, by the file that
   has them. Everything is called with the GIL held but where a comment says otherwise. */
#ifndef SHIM_H
#define SHIM_H

#include "limited.h" /* Python.h comes first */

#include "gormapy.h"

/* Bits of RequestObject.kind: see request.py. */
#define REQUEST_PERSISTENT 2
#define REQUEST_STEPPED 4

/* What moves more bytes than this is called without the GIL. */
#define LONG_COPY (64 << 10)

/* Base types of the classes in gormapy.MPI. */
typedef struct {
  PyObject_HEAD
  int64_t h;
} HandleObject; /* of the classes without a type of their own below */

enum { KEPT_SHIFTS = 8 };
typedef struct {
  PyObject_HEAD
  int64_t h, known;
  gm_comm_shape shape;         /* of the handle known */
  int64_t placed;              /* the handle whose edges Go knows; see raw_neighbor.c */
  int64_t indegree, outdegree; /* of that */
  struct {
    int64_t h; /* the handle that this is of */
    int32_t direction, disp, source, destination;
  } shifts[KEPT_SHIFTS]; /* what Cartcomm.Shift has returned */
} CommObject;

typedef struct {
  PyObject_HEAD
  int64_t h;
  gm_desc *desc; /* of the handle when it was last looked up */
} WinObject;

typedef struct {
  PyObject_HEAD
  int64_t h;
  PyObject *buf; /* what must live until the request completes */
  int kind;
  PyObject *arriving; /* memory that an object arrives in, or NULL or None */
} RequestObject;

typedef struct {
  PyObject_HEAD
  int64_t h;
  gm_type_shape shape;
  int dense;        /* one run of bytes, and committed: the hot calls take it */
  PyObject *recipe; /* bytes: its recipe (gocore/mpi/recipe.go), if a hot method has made it */
  PyObject *parts; /* then: the list of the datatypes that it was made of, or of others that tell how these were made */
  PyObject *construction; /* how it was made in Python's terms; not for a recipe before somebody asks */
} DatatypeObject;

/* The handle of a message from PROC_NULL; see message.py. */
#define MESSAGE_FROM_NOBODY ((int64_t)1 << 62)
typedef struct {
  PyObject_HEAD
  int64_t h, nbytes;
} MessageObject;

typedef struct {
  PyObject_HEAD
  gm_status st;
} StatusObject;

/* Keeps a buffer acquired. */
typedef struct {
  PyObject_HEAD
  Py_buffer view;
} HolderObject;

/* Base of gormapy.MPI.buffer: an address, a length, and who owns the memory. device: it is a device's. */
typedef struct {
  PyObject_HEAD
  int64_t addr, bytes;
  int readonly, device;
  PyObject *owner;
} BufferObject;

/* What a call has started and nobody owns yet. Python may raise KeyboardInterrupt
   between any two calls: then this object goes. A receive is withdrawn, anything else
   goes on, and the memory stays until that is over. */
typedef struct {
  PyObject_HEAD
  int64_t h;
  PyObject *buf;
} StartedObject;

/* types.c, memory.c, word.c */
extern PyTypeObject *HandleType, *SentinelType, *StartedType, *CommType, *WinType, *RequestType, *MessageType,
    *GroupType, *DatatypeType, *StatusType, *HolderType, *FileType, *MemoryType, *BufferType, *WordType;
extern PyType_Spec memory_spec, buffer_spec, word_spec;
int ready_types(PyObject *module);
PyTypeObject *new_type(PyObject *module, PyType_Spec *spec); /* as the module's; NULL with an exception */
PyObject *address_of(PyObject *self, PyObject *o);

/* PyObject_GetBuffer for memory of messages: it fails for BOTTOM and the like, and shows an MPI.buffer of a device's
   memory. The view of an array of NumPy has no shape. */
int get_buffer(PyObject *o, Py_buffer *view, int flags);
void nothing_to_release(PyObject *self, Py_buffer *view);

/* Not 0 when Python has ended (module.c). A daemon thread that still waits in MPI then has nowhere to go back to. */
extern volatile int gm_python_over;
void stay_forever(void);

/* Runs statements without the GIL. */
#define WITHOUT_GIL(...)                \
  do {                                  \
    Py_BEGIN_ALLOW_THREADS;             \
    __VA_ARGS__;                        \
    if (gm_python_over) stay_forever(); \
    Py_END_ALLOW_THREADS;               \
  } while (0)

/* room.c: memory that objects arrive in, of so many bytes or more. room_holds returns what has arrived, as bytes or
   as a memoryview, and that is all that has been touched of it. */
extern PyTypeObject *RoomType;
extern PyType_Spec room_spec;
PyObject *new_room(int64_t size);
PyObject *room_holds(PyObject *room, int64_t bytes);
char *room_memory(PyObject *room, int64_t *size); /* all of it */
PyObject *raw_room(PyObject *self, PyObject *bytes);

/* errors.c: processes that MPI can't be used in, errors, and calls that a signal interrupts. */

/* Not 0 in a forked child, where nothing of MPI may be used. */
extern int gm_forked;
int check_process(void); /* -1 with an exception there */

/* The handle of a communicator; 0 if it is null, or can't be used in this process. */
static inline int64_t comm_handle(PyObject *comm) { return gm_forked ? 0 : ((CommObject *)comm)->h; }

/* Beside the codes of calls: an exception is set. */
enum { RAISED = -2 };

static inline int error_class(int code) { return code & 0xff; }

/* Whether a request whose call has returned this code is still under way. */
static inline int may_complete(int code) { return code > 0 && error_class(code) == GM_ERR_PROC_FAILED_PENDING; }

/* What a call returns: None, MPI.Exception for the code, or NULL if an exception is set. raise_code returns NULL. */
PyObject *none_or(int code);
PyObject *raise_code(int code);
extern PyObject *exception_class;

/* The name of an object's type, for the sentence of an exception: it lasts until the next call. */
const char *type_name(PyObject *o);

/* Runs CALL, an int expression, without the GIL, and again after the handlers of signals whenever it comes back
   interrupted. Sets code to what it returns, or to RAISED if a handler raised an exception. */
#define RESTARTING(code, CALL)                                             \
  do {                                                                     \
    WITHOUT_GIL(code = (CALL));                                            \
    if (code == GM_INTERRUPTED && PyErr_CheckSignals() < 0) code = RAISED; \
  } while (code == GM_INTERRUPTED)

/* Runs CALL, an int expression that sets pending when it comes back interrupted, without the GIL, and resumes it. */
#define BLOCKING(code, pending, st, CALL)                   \
  do {                                                      \
    WITHOUT_GIL(code = (CALL));                             \
    if (code == GM_INTERRUPTED) code = resume(pending, st); \
  } while (0)

/* Goes on with a call that was interrupted, as often as it is. RAISED: the operation has been given up, and its memory
   is to be kept by keep.c. */
int resume(int64_t pending, gm_status *st);

/* hot_comm.c. send_message sends a message of bytes bytes, and waits until that has completed; like BLOCKING. */
int send_message(int kind, int64_t comm, const void *p, int64_t count, int64_t type, int64_t bytes, int64_t dest,
                 int64_t tag, int64_t *pending);
PyObject *set_threads(PyObject *self, PyObject *dict);

/* keep.c: memory of an operation that nobody waits for any more, released when the request h
   (0: none) is over. keep_until_over takes the reference, keep_view the buffer. */
void keep_until_over(int64_t h, PyObject *memory);
void keep_view(int64_t h, Py_buffer *view);
void keep_sweep(void);
Py_ssize_t kept_count(void);

/* guard.c: memmove to or from a program's memory. Returns 0, or 1 if the memory faulted, at guard_address().
   program_copy moves n bytes with the GIL held, and gives the GIL up meanwhile if n is large; guarded_copy
   may be called without the GIL. */
int program_copy(void *to, const void *from, Py_ssize_t n);
int guarded_copy(void *to, const void *from, size_t n);
int64_t guard_address(void);
void guard_arm(int forget); /* has faults come to the guard first; forget: who came after Go is no more */

/* kernel_copy.c: copies n bytes to (put) or from a target's part, at bytes into it, by the kernel. kernel_put may gather
   it with others, to be written by the next call that completes operations, or sooner; kernel_copy writes these first.
   Both return GM_DONE, 0 if Go is to do it, or the code of a fault. complete_bundled begins a call that completes
   operations at a rank (-1: at all); it returns 0 if Go is to make it. They may be called without the GIL. */
int kernel_copy(gm_desc *d, gm_target *t, int put, void *p, int64_t at, int64_t n);
int kernel_put(gm_desc *d, gm_target *t, void *p, int64_t at, int64_t n);
int complete_bundled(gm_desc *d, int64_t rank);

/* Whether Go has the error of a put that a bundle had, for a call that completes it. */
static inline int bundle_failed(const gm_desc *d) { return __atomic_load_n(&d->failed, __ATOMIC_SEQ_CST) != 0; }

/* hot_win.c, for compiled.c. They are called with the GIL or without. returns_origin reports whether an operation on a
   target does not use the origin's memory after its call. The next two do an operation, or return 0 if gm_rma is to.
   flushed_at_once makes a flush (rank -1: of all) if it is allowed and has nothing to wait for, or returns 0. */
int returns_origin(const gm_desc *d, int kind, int64_t bytes, int64_t rank);
int transfer_at_once(gm_desc *d, int put, void *p, int64_t n, int64_t rank, int64_t disp);
int update_at_once(gm_desc *d, int64_t op, int64_t type, void *origin, void *result, int64_t count, int64_t size,
                   int64_t rank, int64_t disp);
int flushed_at_once(gm_desc *d, int64_t rank);

/* compiled.c: its functions' names and addresses. */
PyObject *compiled_addresses(PyObject *self, PyObject *noargs);

/* args.c: arguments of the hot methods. match_args matches them with names; parse_small_int reads a rank or a tag, and
   leaves v as it is where there is none. They return -1, without an exception, for what does not fit. */
int match_args(const char *const *names, int required, PyObject *const *args, Py_ssize_t n, PyObject *kwnames,
               PyObject **out);
int parse_int(PyObject *o, int64_t *out);
int parse_small_int(PyObject *o, int64_t *v);

/* spec.c: a contiguous buffer and a datatype, as the hot methods take them. */
typedef struct {
  Py_buffer view;
  int64_t type, count, size; /* handle, items, bytes of the data of an item */
  int apart;                 /* the items are not dense */
} spec;

/* Reads one of the common buffer specifications. Returns 0, or -1 if the object is
   anything else, which the Python parser sees to (call_fallback), or with an exception
   that a signal handler has raised meanwhile. */
int parse_spec(PyObject *o, int writable, spec *s);
int parse_message(PyObject *o, int writable, spec *s); /* likewise; the items may have gaps */

/* Reads a buffer, all of it, with a datatype or NULL; likewise. The caller keeps both while this may run Python. */
int parse_buffer(PyObject *b, PyObject *t, int writable, spec *s);

/* hot_collv.c. Reads n integers of a list, a tuple, or an array of one dimension; -1, without an exception, for anything else. */
int read_integers(PyObject *o, int64_t n, int64_t *out);

/* watch tells the callable that raw_watch(from, callable) has set of an object of from bytes or more that is about to
   be communicated. Returns -1 with an exception, such as a signal handler's. */
int watch(PyObject *o, Py_ssize_t n);
PyObject *raw_watch(PyObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *set_format(PyObject *self, PyObject *args);

/* Releases the buffer of a blocking call that has returned code. After Ctrl-C or an error others may still read or write
   it: it is kept until the request pending is over. */
static inline void release_spec(int code, int64_t pending, spec *s) {
  if (code == 0)
    PyBuffer_Release(&s->view);
  else
    keep_view(pending, &s->view);
}

/* op.c: the predefined operations' objects, by number. */
enum { MOST_OPS = 32 };
extern PyObject *op_objects[MOST_OPS];

/* The number of a predefined operation, -1 if o is none. NULL stands for the default. */
static inline int op_number(PyObject *o) {
  if (!o) return GM_OP_SUM;
  for (int i = 1; i < MOST_OPS && op_objects[i]; i++)
    if (op_objects[i] == o) return i;
  return -1;
}
PyObject *set_op(PyObject *self, PyObject *args);

/* hot_datatype.c. datatype_shaped finds out whether an object is dense, once it has its shape. datatype_forget forgets
   how it was made. After datatype_copy an object stands for the same datatype as another one. */
extern PyObject *datatype_class;
void datatype_copy(DatatypeObject *t, const DatatypeObject *other);
void datatype_shaped(DatatypeObject *t);
int datatype_communicates(const DatatypeObject *t); /* dense, committed, and not freed by another object either */
int datatype_is_committed(const DatatypeObject *t); /* a derived one, dense or not, likewise */
void datatype_forget(DatatypeObject *t);

/* registry.c: dictionaries of Python. is_registered reports whether any of them up to the last one has something of a
   handle; -1 with an exception. Those up to LAST_COPIED matter to who duplicates a communicator. */
enum {
  REGISTRY_NAMES,
  REGISTRY_ATTRIBUTES,
  REGISTRY_ERROR_HANDLERS,
  REGISTRY_TOPOLOGIES,
  REGISTRY_HINTS,
  REGISTRY_BUFFERS,
  REGISTRY_LOCKS,
  REGISTRY_CONTEXTS,
  REGISTRIES,
  LAST_OF_ALL_FAMILIES = REGISTRY_ERROR_HANDLERS,
  LAST_COPIED = REGISTRY_TOPOLOGIES
};
PyObject *set_registries(PyObject *self, PyObject *args);
int is_registered(const char *family, int64_t h, int last);

/* hot_message.c */
extern PyObject *message_class;

/* hot_making.c, hot_group.c */
extern PyObject *intracomm_class, *group_class;

/* hot_request.c. A new Request that keeps the buffer of s acquired. */
PyObject *new_request(int64_t h, spec *s);

/* Likewise of two; NULL: there is none. */
PyObject *new_request_of(int64_t h, spec *s, spec *r);

/* Ends a request, with a code: one that is not persistent has no handle and no
   memory any more. Only if its handle is still h. */
void finish_request(RequestObject *r, int64_t h, int code);

/* Not a request that completes with a step in Python: see request.py. */
int is_plain_request(PyObject *o);

/* Completes what needs nothing of Go, or returns 0: a null request, and a send that was complete when its call returned. */
static inline int complete_at_once(int64_t h, gm_status *st) {
  if (h != 0 && h != GM_REQUEST_SENT) return 0;
  *st = (gm_status){.source = GM_ANY_SOURCE, .tag = GM_ANY_TAG};
  return 1;
}

/* hot_request_list.c. The class methods take a list of requests, which another thread or a signal handler may change
   meanwhile: this is what was in it, as a new tuple, or NULL if not all of that are plain requests. */
PyObject *plain_requests(PyObject *o);

/* raw_process.c: what setup() was told. */
extern PyObject *request_class, *prequest_class, *in_place;

/* fallback.c: the hot calls. Each has a Python method that its C method stands in for: its fallback. */
enum {
  CALL_PUT,
  CALL_GET,
  CALL_ACCUMULATE,
  CALL_GET_ACCUMULATE,
  CALL_RPUT,
  CALL_RGET,
  CALL_RACCUMULATE,
  CALL_RGET_ACCUMULATE,
  CALL_FETCH_AND_OP,
  CALL_COMPARE_AND_SWAP,
  CALL_FLUSH,
  CALL_FLUSH_LOCAL,
  CALL_FLUSH_ALL,
  CALL_FLUSH_LOCAL_ALL,
  CALL_LOCK,
  CALL_UNLOCK,
  CALL_LOCK_ALL,
  CALL_UNLOCK_ALL,
  CALL_FENCE,
  CALL_SYNC,
  CALL_POST,
  CALL_START_ACCESS,
  CALL_COMPLETE,
  CALL_WAIT_EXPOSED,
  CALL_SEND,
  CALL_RECV,
  CALL_SSEND,
  CALL_ISSEND,
  CALL_SENDRECV,
  CALL_SENDRECV_REPLACE,
  CALL_ISEND,
  CALL_IRECV,
  CALL_BARRIER,
  CALL_IBARRIER,
  CALL_IBCAST,
  CALL_IGATHER,
  CALL_ISCATTER,
  CALL_IALLGATHER,
  CALL_IALLTOALL,
  CALL_IREDUCE,
  CALL_IALLREDUCE,
  CALL_IREDUCE_SCATTER_BLOCK,
  CALL_WAIT,
  CALL_WAIT_OBJECT,
  CALL_TEST,
  CALL_START,
  CALL_WAITALL,
  CALL_WAITALL_OBJECTS,
  CALL_TESTALL,
  CALL_WAITANY,
  CALL_TESTANY,
  CALL_WAITSOME,
  CALL_TESTSOME,
  CALL_STARTALL,
  CALL_ALLREDUCE,
  CALL_BCAST,
  CALL_SEND_OBJECT,
  CALL_RECV_OBJECT,
  CALL_SENDRECV_OBJECT,
  CALL_MPROBE,
  CALL_MPROBE_OBJECT,
  CALL_RECV_MESSAGE,
  CALL_RECV_MESSAGE_OBJECT,
  CALL_ISEND_OBJECT,
  CALL_IRECV_OBJECT,
  CALL_BCAST_OBJECT,
  CALL_GATHER_OBJECT,
  CALL_SCATTER_OBJECT,
  CALL_ALLGATHER_OBJECT,
  CALL_ALLTOALL_OBJECT,
  CALL_ALLREDUCE_OBJECT,
  CALL_GATHER,
  CALL_SCATTER,
  CALL_ALLGATHER,
  CALL_ALLTOALL,
  CALL_REDUCE,
  CALL_REDUCE_SCATTER_BLOCK,
  CALL_SCAN,
  CALL_EXSCAN,
  CALL_REDUCE_SCATTER,
  CALL_GATHERV,
  CALL_SCATTERV,
  CALL_ALLGATHERV,
  CALL_ALLTOALLV,
  CALL_COMM_DUP,
  CALL_COMM_SPLIT,
  CALL_COMM_FREE,
  CALL_COMM_GROUP,
  CALL_COMM_RANK,
  CALL_COMM_SIZE,
  CALL_SHIFT,
  CALL_GROUP_SIZE,
  CALL_GROUP_RANK,
  CALL_GROUP_INCL,
  CALL_TRANSLATE_RANKS,
  CALL_GROUP_FREE,
  CALL_GET_SOURCE,
  CALL_GET_TAG,
  CALL_GET_ERROR,
  CALL_GET_COUNT,
  CALL_CREATE_CONTIGUOUS,
  CALL_CREATE_VECTOR,
  CALL_CREATE_HVECTOR,
  CALL_CREATE_RESIZED,
  CALL_CREATE_INDEXED,
  CALL_CREATE_HINDEXED,
  CALL_CREATE_INDEXED_BLOCK,
  CALL_CREATE_HINDEXED_BLOCK,
  CALL_CREATE_SUBARRAY,
  CALL_CREATE_STRUCT,
  CALL_TYPE_SIZE,
  CALL_TYPE_EXTENT,
  CALL_PACK,
  CALL_UNPACK,
  CALL_COMMIT,
  CALL_FREE_TYPE,
  CALL_READ_AT,
  CALL_WRITE_AT,
  CALL_READ,
  CALL_WRITE,
  CALL_READ_AT_ALL,
  CALL_WRITE_AT_ALL,
  CALL_READ_ALL,
  CALL_WRITE_ALL,
  CALL_READ_ORDERED,
  CALL_WRITE_ORDERED,
  CALL_READ_SHARED,
  CALL_WRITE_SHARED,
  CALL_SEEK,
  CALL_GET_POSITION,
  CALL_COUNT
};
extern const char *const hot_names[];
PyObject *call_fallback(int which, PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames);
PyObject *set_fallback(PyObject *self, PyObject *args);
PyObject *raw_document(PyObject *self, PyObject *args);

/* The arguments of a hot method, and what it does with those that it does not take. */
#define HOT PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames
#define FALL_BACK(which) return call_fallback(which, self, args, n, kwnames)

/* Their tables. Python finds the signature of a method before SIGNATURE_END; set_fallback has the docstring of the Python
   method follow it. */
#define SIGNATURE_END "\n--\n\n"
#define HOT_METHOD(name, f, signature) \
  {name, (PyCFunction)(void *)f, METH_FASTCALL | METH_KEYWORDS, name signature SIGNATURE_END}
#define HOT_NOARGS(name, f) {name, f, METH_NOARGS, name "($self)" SIGNATURE_END}
#define HOT_CLASS_METHOD(name, f, signature) \
  {name, (PyCFunction)(void *)f, METH_FASTCALL | METH_KEYWORDS | METH_CLASS, name signature SIGNATURE_END}
extern PyMethodDef win_methods[], comm_methods[], comm_coll_methods[], comm_object_methods[], request_methods[],
    request_list_methods[], comm_making_methods[], datatype_methods[], comm_message_methods[], message_methods[],
    win_epoch_methods[], file_methods[], group_methods[], comm_group_methods[], comm_query_methods[],
    datatype_query_methods[], status_query_methods[], datatype_pack_methods[], comm_collv_methods[],
    intracomm_methods[], cartcomm_methods[], function_methods[];

#endif
