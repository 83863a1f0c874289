/* Python objects: how they are pickled, and the steps of their messages and collectives. gocore/coll/objects.go has the
   protocol of the collectives. */
#include "object.h"
#include "_cgo_export.h"

int64_t object_type;
static PyObject *pickler, *locks, *make_lock, *settings;

PyObject *set_objects(PyObject *self, PyObject *args) {
  PyObject *p, *l, *m, *s;
  if (!PyArg_ParseTuple(args, "OO!OLO", &p, &PyDict_Type, &l, &m, &object_type, &s)) return NULL;
  Py_INCREF(p), Py_INCREF(l), Py_INCREF(m), Py_INCREF(s);
  Py_XSETREF(pickler, p);
  Py_XSETREF(locks, l);
  Py_XSETREF(make_lock, m);
  Py_XSETREF(settings, s);
  Py_RETURN_NONE;
}

/* Strings that are asked for again and again; NULL with an exception if there is no memory for one. */
static PyObject *name_of(PyObject **kept, const char *name) {
  if (!*kept) *kept = PyUnicode_InternFromString(name);
  return *kept;
}

static PyObject *attribute(PyObject *o, PyObject **kept, const char *name) {
  return name_of(kept, name) ? PyObject_GetAttr(o, *kept) : NULL;
}

int64_t least_room(void) {
  static PyObject *kept;
  PyObject *bytes = settings ? attribute(settings, &kept, "irecv_bufsz") : NULL;
  int64_t least = bytes && PyLong_Check(bytes) ? PyLong_AsLongLong(bytes) : -1;
  Py_XDECREF(bytes);
  PyErr_Clear();
  return least;
}

/* Pickles
   ------- */

/* Has MPI.pickle add to the exception that there is what it knows of it. */
static PyObject *explained(const char *method, PyObject *about, const char *call) {
  PyObject *type, *value, *traceback;
  if (!PyErr_ExceptionMatches(PyExc_Exception)) return NULL;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (traceback) PyException_SetTraceback(value, traceback);
  PyObject *done = PyObject_CallMethod(pickler, method, "OOs", value, about, call);
  if (!done) PyErr_Clear();
  Py_XDECREF(done);
  PyErr_Restore(type, value, traceback);
  return NULL;
}

PyObject *pickled(PyObject *o, const char *call) {
  static PyObject *dumps_name, *protocol_name;
  if (!pickler) return PyErr_Format(PyExc_RuntimeError, "gormapy.MPI is not imported");
  keep_sweep();
  PyObject *dumps = attribute(pickler, &dumps_name, "_dumps");
  PyObject *protocol = dumps ? attribute(pickler, &protocol_name, "_protocol") : NULL;
  PyObject *pickle = NULL, *stack[] = {o, protocol};
  if (protocol && !(pickle = call_vector(dumps, stack, protocol == Py_None ? 1 : 2, NULL)))
    explained("_explain_dumps", o, call);
  if (pickle && !PyObject_CheckBuffer(pickle)) {
    PyErr_Format(PyExc_TypeError, "MPI.pickle's dumps has to return bytes, or what has a buffer, not %.100s",
                 type_name(pickle));
    Py_CLEAR(pickle);
  }
  if (pickle && check_process() < 0) Py_CLEAR(pickle); /* it has forked */
  Py_XDECREF(dumps);
  Py_XDECREF(protocol);
  return pickle;
}

/* Whether there is nothing in a pickle, which stands for None. */
static int nothing_in(PyObject *pickle) {
  Py_buffer view;
  if (PyBytes_CheckExact(pickle)) return PyBytes_GET_SIZE(pickle) == 0;
  if (PyObject_GetBuffer(pickle, &view, PyBUF_SIMPLE) < 0) return -1;
  int nothing = view.len == 0;
  PyBuffer_Release(&view);
  return nothing;
}

PyObject *unpickled(PyObject *pickle, const char *call) {
  static PyObject *loads_name;
  int nothing = nothing_in(pickle);
  if (nothing < 0) return NULL;
  if (nothing) Py_RETURN_NONE;
  PyObject *loads = attribute(pickler, &loads_name, "_loads");
  if (!loads) return NULL;
  Py_INCREF(pickle); /* it may be in a list, which Python code can find */
  PyObject *o = PyObject_CallOneArg(loads, pickle);
  Py_DECREF(loads);
  if (!o) explained("_explain_loads", pickle, call);
  Py_DECREF(pickle);
  return o;
}

PyObject *unpickled_list(PyObject *pickles, const char *call) {
  PyObject *out = PyList_New(0); /* Python code that runs meanwhile can find it: nothing is missing in it */
  for (Py_ssize_t i = 0; out && i < PyList_GET_SIZE(pickles); i++) {
    PyObject *o = unpickled(PyList_GET_ITEM(pickles, i), call);
    if (!o || PyList_Append(out, o) < 0) Py_CLEAR(out);
    Py_XDECREF(o);
  }
  return out;
}

/* Communicators
   ------------- */

const gm_comm_shape *shape_of(CommObject *comm) {
  if (gm_forked || !comm->h) return NULL;
  if (comm->known != comm->h) {
    if (gm_shape_of(comm->h, &comm->shape)) return NULL;
    comm->known = comm->h;
  }
  return &comm->shape;
}

const gm_comm_shape *one_group(CommObject *comm) {
  const gm_comm_shape *shape = shape_of(comm);
  return shape && shape->size ? shape : NULL;
}

static PyObject *acquire_name, *release_name; /* there are both before a lock is taken */

PyObject *take_lock(CommObject *comm, const char *kind) {
  if (!name_of(&acquire_name, "acquire") || !name_of(&release_name, "release")) return NULL;
  PyObject *h = PyLong_FromLongLong(comm->h), *key = PyUnicode_InternFromString(kind), *lock = NULL;
  if (h && key) {
    PyObject *table = PyDict_GetItemWithError(locks, h);
    lock = table ? PyDict_GetItemWithError(table, key) : NULL;
    if (lock)
      Py_INCREF(lock);
    else if (!PyErr_Occurred())
      lock = PyObject_CallFunctionObjArgs(make_lock, comm, key, NULL);
  }
  Py_XDECREF(h);
  Py_XDECREF(key);
  if (!lock) return NULL;
  PyObject *taken = PyObject_CallMethodNoArgs(lock, acquire_name);
  if (!taken) {
    Py_DECREF(lock);
    return NULL;
  }
  Py_DECREF(taken);
  return lock;
}

void give_lock(PyObject *lock) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject *given = PyObject_CallMethodNoArgs(lock, release_name);
  if (!given) PyErr_WriteUnraisable(lock);
  Py_XDECREF(given);
  Py_DECREF(lock);
  PyErr_Restore(type, value, traceback);
}

/* Messages
   -------- */

PyObject *send_pickle(int kind, int64_t comm, PyObject *pickle, int64_t dest, int64_t tag) {
  int64_t pending = 0;
  Py_buffer view;
  if (PyObject_GetBuffer(pickle, &view, PyBUF_SIMPLE) < 0) return NULL;
  NOTE_COMM(comm, dest, tag, view.len);
  int code = send_message(kind, comm, view.buf, view.len, object_type, view.len, dest, tag, &pending);
  if (code == 0)
    PyBuffer_Release(&view);
  else
    keep_view(pending, &view);
  return none_or(code);
}

PyObject *receive_matched(int64_t message, int64_t bytes, gm_status *st) {
  int64_t req = 0;
  int code;
  PyObject *pickle = PyBytes_FromStringAndSize(NULL, bytes);
  if (!pickle) { /* the sender may wait for its receive */
    char nothing;
    if (gm_mrecv(message, (int64_t)(intptr_t)&nothing, 0, object_type, &req) == 0) gm_abandon(req, 1);
    return NULL;
  }
  WITHOUT_GIL(code = gm_mrecv(message, (int64_t)(intptr_t)PyBytes_AS_STRING(pickle), bytes, object_type, &req));
  if (code) {
    Py_DECREF(pickle);
    return raise_code(code);
  }
  gm_blocks(req);
  RESTARTING(code, gm_wait(req, st));
  if (code == RAISED) WITHOUT_GIL(gm_abandon(req, 1));
  if (code) { /* a network may still write to it */
    keep_until_over(req, pickle);
    return none_or(code);
  }
  return pickle;
}

/* Receives a message; first, if sent is not NULL, sends one, whose buffer, count, datatype, dest and tag are in it. sending is the request of
   a send that goes on. */
static PyObject *exchange_pickles(int64_t comm, int64_t *sent, int64_t source, int64_t tag, gm_status *st,
                                  int64_t *sending) {
  char here[4096]; /* longer pickles are received where they stay */
  int64_t wait = 0, message = 0, at = (int64_t)(intptr_t)here;
  int code, first = sent != NULL;
  RESTARTING(code, first ? (first = 0,
                            gm_sendrecv_object(comm, sent, source, tag, at, sizeof here, st, &message, &wait, sending))
                         : gm_recv_object(comm, source, tag, at, sizeof here, st, &message, &wait));
  if (code == RAISED) gm_end_probe(wait);
  if (code) return none_or(code);
  return message ? receive_matched(message, st->bytes, st) : PyBytes_FromStringAndSize(here, st->bytes);
}

PyObject *receive_pickle(int64_t comm, int64_t source, int64_t tag, gm_status *st) {
  return exchange_pickles(comm, NULL, source, tag, st, NULL);
}

PyObject *sendrecv_pickles(int64_t comm, PyObject *pickle, int64_t dest, int64_t send_tag, int64_t source, int64_t tag,
                           gm_status *st) {
  int64_t sending = 0;
  int code;
  gm_status own;
  Py_buffer view;
  if (PyObject_GetBuffer(pickle, &view, PyBUF_SIMPLE) < 0) return NULL;
  int64_t sent[] = {(int64_t)(intptr_t)view.buf, view.len, object_type, dest, send_tag};
  NOTE_COMM(comm, dest, send_tag, view.len);
  PyObject *received = exchange_pickles(comm, sent, source, tag, st, &sending);
  if (!received && sending) gm_abandon(sending, 0); /* the send goes on */
  if (received && sending) {
    gm_blocks(sending);
    RESTARTING(code, gm_wait(sending, &own));
    if (code == RAISED) WITHOUT_GIL(gm_abandon(sending, 1));
    if (code) {
      Py_CLEAR(received);
      none_or(code);
    }
  }
  if (!received && sending)
    keep_view(sending, &view);
  else
    PyBuffer_Release(&view);
  return received;
}

/* Collectives
   ----------- */

/* Buffers of pickles. The obj of one that there is not is NULL. */
typedef struct {
  Py_buffer *views;
  Py_ssize_t n;
} buffers;

static int new_buffers(buffers *b, Py_ssize_t n) {
  b->n = n;
  b->views = PyMem_Calloc(n, sizeof *b->views);
  if (!b->views) PyErr_NoMemory();
  return b->views ? 0 : -1;
}

static void release(buffers *b) {
  for (Py_ssize_t i = 0; b->views && i < b->n; i++)
    if (b->views[i].obj) PyBuffer_Release(&b->views[i]);
  PyMem_Free(b->views);
  b->views = NULL;
}

/* Keeps them until a request is over. */
static void keep(buffers *b, int64_t req) {
  for (Py_ssize_t i = 0; b->views && i < b->n; i++) {
    if (!b->views[i].obj) continue;
    keep_view(req, &b->views[i]);
    b->views[i].obj = NULL;
  }
}

/* Acquires what a call sends: they may not change between its steps. */
static int hold(buffers *b, const object_call *call, int each) {
  if (new_buffers(b, !call->sending ? 0 : each ? PyList_GET_SIZE(call->sending) : 1) < 0) return -1;
  for (Py_ssize_t i = 0; i < b->n; i++) {
    PyObject *pickle = each ? PyList_GET_ITEM(call->sending, i) : call->sending;
    if (call->reduce && pickle == Py_None)
      b->views[i].len = -1;
    else if (PyObject_GetBuffer(pickle, &b->views[i], PyBUF_SIMPLE) < 0)
      return -1;
  }
  return 0;
}

/* Writes a head. The part that is not in use is not copied to a board, where heads are large. */
static void fill_head(char *head, int64_t bytes, const Py_buffer *view, int64_t note, int by_messages) {
  int64_t size = view->len, used = size > 0 && size <= bytes - GM_HEAD_DATA ? size : 0;
  memcpy(head, &size, sizeof size);
  memcpy(head + GM_HEAD_NOTE, &note, sizeof note);
  if (used) memcpy(head + GM_HEAD_DATA, view->buf, used);
  if (by_messages) memset(head + GM_HEAD_DATA + used, 0, bytes - GM_HEAD_DATA - used);
}

static int64_t size_in(const char *head) {
  int64_t size;
  memcpy(&size, head, sizeof size);
  return size;
}

static int64_t note_in(const char *head) {
  int64_t note;
  memcpy(&note, head + GM_HEAD_NOTE, sizeof note);
  return note;
}

/* Compares the notes of n heads with that of this rank. */
static int compare_notes(object_call *call, const gm_comm_shape *shape, const gm_heads *x, const char *heads) {
  call->same = 1;
  for (Py_ssize_t r = 0; r < shape->size; r++) {
    if (r == shape->rank) continue;
    int64_t theirs = note_in(heads + r * x->bytes), plain = (int64_t)1 << GM_PLAIN_BIT;
    if ((theirs | plain) != (call->note | plain)) {
      raise_code(gm_objects_differ(call->note, theirs, r));
      return -1;
    }
    if (theirs != call->note) call->same = 0;
  }
  return 0;
}

/* The bytes of n pickles, for a recording. */
static int64_t pickled_bytes(const char *heads, int64_t bytes, Py_ssize_t n) {
  int64_t sum = 0;
  for (Py_ssize_t i = 0; i < n; i++)
    if (size_in(heads + i * bytes) > 0) sum += size_in(heads + i * bytes);
  return sum;
}

/* Where the parts of the second step are: counts, and displacements from the first one that there is. */
static int new_side(gm_side *s, Py_ssize_t n) {
  *s = (gm_side){.type = object_type, .ncounts = n, .ndispls = n};
  s->counts = PyMem_Calloc(n, sizeof *s->counts);
  s->displs = PyMem_Calloc(n, sizeof *s->displs);
  if (s->counts && s->displs) return 0;
  PyErr_NoMemory();
  return -1;
}

/* Adds a pickle if it is longer than room. */
static void add_part(gm_side *s, Py_ssize_t i, const Py_buffer *view, int64_t room) {
  if (view->len <= room) return;
  int64_t at = (int64_t)(intptr_t)view->buf;
  if (!s->addr) s->addr = at;
  s->counts[i] = view->len;
  s->displs[i] = at - s->addr;
}

/* Takes the second step: puts into out, in place of None, the long pickles that this rank receives. heads are those
   that it has received, sent what it sends. */
static int take_long(const object_call *call, const gm_comm_shape *shape, gm_heads *x, const char *heads, buffers *sent,
                     PyObject *out) {
  int64_t room = x->bytes - GM_HEAD_DATA, req = 0;
  int kind = x->kind, at_root = x->root == shape->rank, code = RAISED;
  if (x->reduce && kind == GM_ALLGATHER) kind = GM_GATHER, at_root = shape->rank == 0;
  Py_ssize_t n = kind == GM_GATHER && !at_root ? 0 : PyList_GET_SIZE(out);
  buffers got = {0};
  gm_side s = {0}, r = {0};
  if (new_side(&s, sent->n) < 0 || new_side(&r, n) < 0 || new_buffers(&got, n) < 0) goto done;
  if (kind == GM_ALLTOALL || (kind == GM_SCATTER && at_root)) {
    for (Py_ssize_t i = 0; i < sent->n; i++)
      if (i != shape->rank) add_part(&s, i, &sent->views[i], room);
  } else if (kind == GM_GATHER && !at_root) {
    add_part(&s, 0, &sent->views[0], room);
  }
  for (Py_ssize_t i = 0; i < n; i++) {
    int own = kind == GM_BCAST || kind == GM_SCATTER ? at_root : i == shape->rank;
    int64_t size = size_in(heads + i * x->bytes);
    PyObject *pickle;
    if (own) { /* what the others receive from here, in a broadcast and an allgather */
      if (kind == GM_BCAST || kind == GM_ALLGATHER) add_part(&r, i, &sent->views[0], room);
    } else if (size > room) {
      if (!(pickle = PyBytes_FromStringAndSize(NULL, size)) || PyList_SetItem(out, i, pickle) < 0) goto done;
      if (PyObject_GetBuffer(pickle, &got.views[i], PyBUF_SIMPLE) < 0) goto done;
      add_part(&r, i, &got.views[i], room);
    }
  }
  WITHOUT_GIL(code = gm_long_objects(x, &s, &r, &req));
  if (code == 0) {
    gm_status st;
    gm_blocks(req);
    RESTARTING(code, gm_wait(req, &st));
    if (code == RAISED) WITHOUT_GIL(gm_abandon(req, 1));
  }
  if (code) { /* others may still read and write there */
    keep(sent, req);
    keep(&got, req);
  }
done:
  if (code) gm_refuse_objects(x); /* others may wait for this rank */
  release(&got);
  PyMem_Free(s.counts), PyMem_Free(s.displs), PyMem_Free(r.counts), PyMem_Free(r.displs);
  if (code > 0) raise_code(code);
  return code ? -1 : 0;
}

/* Exchanges heads. RAISED comes with an exception. */
static int exchange(gm_heads *x, PyObject *memory) {
  int64_t pending = 0;
  int code;
  gm_status st;
  WITHOUT_GIL(code = gm_exchange_heads(x, &pending));
  if (code == GM_INTERRUPTED) {
    code = resume(pending, &st);
    int settled = gm_settle_heads(x, code != 0);
    if (code == 0) code = settled;
  }
  if (code == 0) return 0;
  Py_INCREF(memory); /* a peer may still read or fill it */
  keep_until_over(pending, memory);
  if (code > 0) raise_code(code);
  return RAISED;
}

PyObject *collect(object_call *call) {
  const gm_comm_shape *known = shape_of(call->comm);
  if (!known) { /* pickling has freed it */
    gm_comm_shape none;
    return raise_code(gm_shape_of(call->comm->h, &none));
  }
  gm_comm_shape copy = *known, *shape = &copy; /* calls of other threads may change it */
  int kind = call->kind, at_root = call->root == shape->rank, each = kind == GM_SCATTER || kind == GM_ALLTOALL;
  int to_all = kind == GM_ALLGATHER || kind == GM_ALLTOALL;
  Py_ssize_t got = to_all || (kind == GM_GATHER && at_root) ? shape->size : kind == GM_GATHER ? 0 : 1;
  if (each && call->sending && (!PyList_CheckExact(call->sending) || PyList_GET_SIZE(call->sending) != shape->size))
    return PyErr_Format(PyExc_ValueError, "expecting a list of %d pickles, one for each rank", shape->size);
  if ((at_root || kind == GM_GATHER || to_all) && !call->sending)
    return PyErr_Format(PyExc_ValueError, "expecting what this rank sends");
  gm_heads x = {.comm = call->comm->h,
                .kind = kind,
                .root = call->root,
                .reduce = call->reduce,
                .number = call->number,
                .generation = call->generation,
                .bytes = each ? shape->part : shape->head};
  PyObject *memory = NULL, *out = NULL;
  buffers sent = {0};
  if (hold(&sent, call, each) < 0) goto unsent;
  Py_ssize_t apart = kind == GM_BCAST ? 0 : sent.n; /* a broadcast sends from where the others receive */
  if (!(memory = PyBytes_FromStringAndSize(NULL, (apart + got) * x.bytes))) goto unsent;
  char *send = PyBytes_AS_STRING(memory), *recv = send + apart * x.bytes;
  for (Py_ssize_t i = 0; i < got; i++) memset(recv + i * x.bytes, 0, GM_HEAD_DATA);
  for (Py_ssize_t i = 0; i < sent.n; i++)
    fill_head(send + i * x.bytes, x.bytes, &sent.views[i], call->note, x.bytes <= 512 || call->number);
  x.send = (int64_t)(intptr_t)send, x.recv = (int64_t)(intptr_t)recv;
  x.sent = kind == GM_BCAST || (kind == GM_GATHER && at_root) ? 0 : sent.n;
  x.received = kind == GM_SCATTER && at_root ? 0 : got;
  if (TRACING && !call->number) {
    int64_t peer = to_all ? TRACE_NO_PEER : x.root;
    trace_note(TRACE_CALL_COMM, x.comm, peer, -1, pickled_bytes(send, x.bytes, sent.n));
  }
  if (exchange(&x, memory)) goto end;
  call->number = x.number, call->generation = x.generation, call->more = x.more;
  if (TRACING && !sent.n) trace_note_bytes(pickled_bytes(recv, x.bytes, got));
  if (kind == GM_ALLGATHER && compare_notes(call, shape, &x, recv) < 0) {
    gm_finish_objects(&x);
    goto end;
  }
  if (!(out = PyList_New(got))) goto failed;
  for (Py_ssize_t i = 0; i < got; i++) {
    int64_t size = size_in(recv + i * x.bytes);
    int own = kind == GM_BCAST || kind == GM_SCATTER ? at_root : i == shape->rank;
    PyObject *part = !own ? Py_None : each ? PyList_GET_ITEM(call->sending, shape->rank) : call->sending;
    if (own || size < 0 || size > x.bytes - GM_HEAD_DATA)
      Py_INCREF(part);
    else if (!(part = PyBytes_FromStringAndSize(recv + i * x.bytes + GM_HEAD_DATA, size)))
      goto failed;
    PyList_SET_ITEM(out, i, part);
  }
  if (x.more && take_long(call, shape, &x, recv, &sent, out) < 0) Py_CLEAR(out);
  goto end;
unsent:
  if (!call->number) goto end; /* the others do not know of it yet */
failed:
  gm_refuse_objects(&x);
  Py_CLEAR(out);
end:
  release(&sent);
  Py_XDECREF(memory);
  return out;
}

const char *object_call_name(int kind) {
  switch (kind) {
    case GM_BCAST:
      return "bcast";
    case GM_GATHER:
      return "gather";
    case GM_SCATTER:
      return "scatter";
    case GM_ALLGATHER:
      return "allgather";
  }
  return "alltoall";
}

PyObject *collect_locked(object_call *call) {
  PyObject *lock = take_lock(call->comm, object_call_name(call->kind));
  if (!lock) return NULL;
  PyObject *out = collect(call);
  give_lock(lock);
  return out;
}

/* Reductions
   ---------- */

/* Whether all ranks get the same value from the same operands of this type, whatever the predefined operation. */
static int plain(PyObject *o) {
  PyTypeObject *t = Py_TYPE(o);
  return t == &PyFloat_Type || t == &PyLong_Type || t == &PyBool_Type || t == &PyComplex_Type || t == &PyUnicode_Type ||
         t == &PyBytes_Type || o == Py_None;
}

/* Combines objects in rank order. */
static PyObject *folded(PyObject *objects, PyObject *op) {
  PyObject *result = PyList_GET_ITEM(objects, 0);
  Py_INCREF(result);
  for (Py_ssize_t i = 1; result && i < PyList_GET_SIZE(objects); i++) {
    PyObject *x = result, *y = PyList_GET_ITEM(objects, i), *stack[] = {x, y};
    Py_INCREF(y);
    result = op == op_objects[GM_OP_SUM] ? PyNumber_Add(x, y) : call_vector(op, stack, 2, NULL);
    Py_DECREF(x);
    Py_DECREF(y);
  }
  return result;
}

static PyObject *unpickled_and_folded(PyObject *pickles, PyObject *op) {
  PyObject *objects = unpickled_list(pickles, "allreduce");
  PyObject *result = objects ? folded(objects, op) : NULL;
  Py_XDECREF(objects);
  return result;
}

/* Rank 0 folds, so that all ranks get the same object whatever the operation does, and broadcasts the pickle, or that
   there is none, under the number of the call. Returns that pickle. */
static PyObject *folded_by_one(const object_call *gathered, int rank, PyObject *pickles, PyObject *op) {
  object_call call = {.comm = gathered->comm,
                      .kind = GM_BCAST,
                      .reduce = 1,
                      .number = gathered->number,
                      .generation = gathered->generation};
  PyObject *type, *value, *traceback, *result = NULL;
  if (rank == 0) {
    PyObject *object = unpickled_and_folded(pickles, op);
    call.sending = object ? pickled(object, "allreduce") : NULL;
    Py_XDECREF(object);
  }
  PyErr_Fetch(&type, &value, &traceback);
  if (rank == 0 && !call.sending) {
    Py_INCREF(Py_None);
    call.sending = Py_None;
  }
  PyObject *received = collect(&call);
  Py_XDECREF(call.sending);
  if (type &&
      !(PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception))) /* whatever has become of the broadcast */
    PyErr_Restore(type, value, traceback);
  else if (type) /* but for KeyboardInterrupt */
    Py_DECREF(type), Py_XDECREF(value), Py_XDECREF(traceback);
  else if (received && PyList_GET_ITEM(received, 0) == Py_None)
    raise_code(gm_fold_failed());
  else if (received)
    result = PyList_GET_ITEM(received, 0), Py_INCREF(result);
  Py_XDECREF(received);
  return result;
}

PyObject *allreduce_object(CommObject *comm, PyObject *o, PyObject *op) {
  if (!op || op == Py_None) op = op_objects[GM_OP_SUM];
  gm_comm_shape shape = *shape_of(comm);
  int number = op_number(op);
  object_call call = {.comm = comm, .kind = GM_ALLGATHER, .reduce = 1};
  call.note = (int64_t)1 << GM_REDUCE_BIT;
  if (number > 0) call.note |= number | (int64_t)plain(o) << GM_PLAIN_BIT;
  PyObject *lock, *pickles = NULL, *one = NULL, *result = NULL;
  if (!(call.sending = pickled(o, "allreduce"))) return NULL;
  int everywhere = 0;
  if ((lock = take_lock(comm, "allreduce"))) {
    if ((pickles = collect(&call))) {
      everywhere = shape.size == 1 || (call.same && !call.more && call.note >> GM_PLAIN_BIT & 1);
      if (!everywhere) one = folded_by_one(&call, shape.rank, pickles, op);
    }
    give_lock(lock); /* what follows may call MPI again */
  }
  if (everywhere) result = unpickled_and_folded(pickles, op);
  if (one) result = unpickled(one, "allreduce");
  Py_XDECREF(one);
  Py_XDECREF(pickles);
  Py_DECREF(call.sending);
  return result;
}
