/* The hot methods of Comm: the collectives of buffers with equal counts, blocking and nonblocking. As in hot_comm.c, the
   usual arguments are read here, and the Python method of the same name gets the others, and all calls of
   intercommunicators. */
#include "object.h"
#include "userop.h"
#include "_cgo_export.h"

/* Returns the request of a nonblocking collective, which keeps the buffers of its sides (NULL: there is none), or the
   exception for its code. */
static PyObject *started(int code, int64_t req, spec *s, spec *r) {
  if (!code) return new_request_of(req, s, r);
  if (s) PyBuffer_Release(&s->view);
  if (r) PyBuffer_Release(&r->view);
  return raise_code(code);
}

/* Starts a collective. As in start_p2p, one of a few bytes keeps the GIL. */
#define STARTING(code, bytes, CALL) \
  do {                              \
    if ((bytes) > LONG_COPY)        \
      WITHOUT_GIL(code = (CALL));   \
    else                            \
      code = (CALL);                \
  } while (0)

static PyObject *comm_ibarrier(HOT) {
  int64_t req = 0, h = comm_handle(self);
  if (!h || !request_class || n || kwnames) FALL_BACK(CALL_IBARRIER);
  NOTE_COMM(h, TRACE_NO_PEER, -1, 0);
  int code = gm_coll(GM_IBARRIER, h, 0, 0, 0, 0, 0, 0, 0, 0, &req);
  return started(code, req, NULL, NULL);
}

static PyObject *bcast(HOT, int which, int starts) {
  static const char *const names[] = {"buf", "root", NULL};
  PyObject *a[2];
  spec s;
  int64_t root = 0, pending = 0, req = 0, h = comm_handle(self);
  int code;
  gm_status st;
  if (!h || !request_class || match_args(names, 1, args, n, kwnames, a) < 0 || parse_small_int(a[1], &root) < 0 ||
      parse_message(a[0], 0, &s) < 0)
    FALL_BACK(which);
  if (s.view.readonly) { /* only the root of an intracommunicator, and ROOT of an intercommunicator, may have one */
    PyBuffer_Release(&s.view);
    FALL_BACK(which);
  }
  int64_t at = (int64_t)(intptr_t)s.view.buf;
  NOTE_COMM(h, root, -1, s.count * s.size);
  if (starts) {
    STARTING(code, s.count * s.size, gm_coll(GM_BCAST, h, 0, 0, 0, at, s.count, s.type, 0, root, &req));
    return started(code, req, NULL, &s);
  }
  BLOCKING(code, pending, &st, gm_coll_blocking(GM_BCAST, h, 0, 0, 0, at, s.count, s.type, 0, root, &pending));
  release_spec(code, pending, &s);
  return none_or(code);
}

static PyObject *comm_bcast(HOT) { return bcast(self, args, n, kwnames, CALL_BCAST, 0); }
static PyObject *comm_ibcast(HOT) { return bcast(self, args, n, kwnames, CALL_IBCAST, 1); }

/* What a rank gives for one side of a collective. */
enum {
  NO_SIDE,    /* nothing: the argument is not looked at */
  ONE_PART,   /* a buffer */
  EQUAL_PARTS /* a buffer with a part for each rank */
};

typedef struct {
  spec s;
  int held;
  int64_t addr, count, type; /* the count is that of a part */
} side;

/* Reads a side; size is that of the communicator. Returns -1 for what does not fit. */
static int read_side(PyObject *o, int what, int64_t size, int writable, side *x) {
  x->held = 0, x->addr = x->count = x->type = 0;
  if (what == NO_SIDE) return 0;
  /* an explicit count is that of a part, which Python compares with the buffer */
  if (what == EQUAL_PARTS && (PyList_CheckExact(o) || PyTuple_CheckExact(o)) && PySequence_Fast_GET_SIZE(o) > 2)
    return -1;
  if (parse_message(o, writable, &x->s) < 0) return -1;
  x->held = 1, x->addr = (int64_t)(intptr_t)x->s.view.buf, x->count = x->s.count, x->type = x->s.type;
  if (what == EQUAL_PARTS) {
    if (x->count % size) return -1;
    x->count /= size;
  }
  return 0;
}

static void drop_side(side *x) {
  if (x->held) PyBuffer_Release(&x->s.view);
}

/* A call in a communicator of one group whose sides have been chosen; op is 0 where nothing is reduced, and -1 for an
   operation of the program. starts is set of a nonblocking one. */
typedef struct {
  int which, kind, send, recv, send_in_place, recv_in_place, rooted, starts;
  int64_t op, root;
  int64_t items;    /* of each part, and one more; 0: they tell */
  PyObject *own_op; /* the program's */
} collective;

/* Takes the operation; returns -1 for one that is for Python. */
static int read_op(PyObject *op, collective *c) {
  if ((c->op = op_number(op)) >= 0) return 0;
  c->own_op = op;
  return !c->starts && is_own_op(op) ? 0 : -1;
}

static PyObject *run_collective(HOT, const collective *c, PyObject *sendbuf, PyObject *recvbuf, int64_t size) {
  side s, r;
  int64_t pending = 0, req = 0, h = ((CommObject *)self)->h;
  int code, reduces = c->op != 0, fits;
  own_reduction own = {c->kind, h, c->root, 0, ((CommObject *)self)->shape, NULL, NULL};
  gm_status st;
  s.held = r.held = 0;
  fits = read_side(sendbuf, c->send_in_place ? NO_SIDE : c->send, size, 0, &s) == 0 &&
         read_side(recvbuf, c->recv_in_place ? NO_SIDE : c->recv, size, 1, &r) == 0;
  if (fits && reduces) {
    if (s.held && r.held &&
        (c->starts || c->kind != GM_ALLREDUCE ||
         c->own_op)) /* Python says what does not match; of Allreduce the core does */
      fits = s.type == r.type && s.count == r.count;
    if (c->items && (s.held ? s.count : r.count) != c->items - 1) fits = 0;
    own.count = s.held ? s.count : r.count;
    if (fits && c->own_op) fits = find_function(&own, c->own_op, s.held ? &s.s : &r.s) == 0;
    if (c->kind == GM_REDUCE_SCATTER_BLOCK) s.count *= size;
  }
  if (!fits) {
    drop_side(&s), drop_side(&r);
    FALL_BACK(c->which);
  }
  if (c->send_in_place) s.addr = GM_IN_PLACE;
  if (c->recv_in_place) r.addr = GM_IN_PLACE;
  int64_t bytes = s.count ? s.count * s.s.size : r.held ? r.count * r.s.size : 0;
  if (c->kind == GM_REDUCE_SCATTER_BLOCK && c->send_in_place) bytes *= size; /* those of all parts */
  NOTE_COMM(h, c->rooted ? c->root : TRACE_NO_PEER, -1, bytes);
  if (c->own_op) return reduce_by_function(&own, s.held ? &s.s : NULL, r.held ? &r.s : NULL);
  if (c->starts) {
    STARTING(code, bytes * size,
             gm_coll(c->kind, h, s.addr, s.count, s.type, r.addr, r.count, r.type, c->op, c->root, &req));
    return started(code, req, s.held ? &s.s : NULL, r.held ? &r.s : NULL);
  }
  BLOCKING(code, pending, &st,
           gm_coll_blocking(c->kind, h, s.addr, s.count, s.type, r.addr, r.count, r.type, c->op, c->root, &pending));
  if (s.held) release_spec(code, pending, &s.s);
  if (r.held) release_spec(code, pending, &r.s);
  return none_or(code);
}

static PyObject *gather(HOT, int which, int starts) {
  static const char *const names[] = {"sendbuf", "recvbuf", "root", NULL};
  PyObject *a[3];
  collective c = {.which = which, .kind = GM_GATHER, .starts = starts, .rooted = 1, .send = ONE_PART};
  const gm_comm_shape *shape = one_group((CommObject *)self);
  if (!shape || !request_class || match_args(names, 2, args, n, kwnames, a) < 0 || parse_small_int(a[2], &c.root) < 0)
    FALL_BACK(which);
  if (c.root == shape->rank) c.recv = EQUAL_PARTS, c.send_in_place = a[0] == in_place;
  return run_collective(self, args, n, kwnames, &c, a[0], a[1], shape->size);
}

static PyObject *comm_gather(HOT) { return gather(self, args, n, kwnames, CALL_GATHER, 0); }
static PyObject *comm_igather(HOT) { return gather(self, args, n, kwnames, CALL_IGATHER, 1); }

static PyObject *scatter(HOT, int which, int starts) {
  static const char *const names[] = {"sendbuf", "recvbuf", "root", NULL};
  PyObject *a[3];
  collective c = {.which = which, .kind = GM_SCATTER, .starts = starts, .rooted = 1, .recv = ONE_PART};
  const gm_comm_shape *shape = one_group((CommObject *)self);
  if (!shape || !request_class || match_args(names, 2, args, n, kwnames, a) < 0 || parse_small_int(a[2], &c.root) < 0)
    FALL_BACK(which);
  if (c.root == shape->rank) c.send = EQUAL_PARTS, c.recv_in_place = a[1] == in_place;
  return run_collective(self, args, n, kwnames, &c, a[0], a[1], shape->size);
}

static PyObject *comm_scatter(HOT) { return scatter(self, args, n, kwnames, CALL_SCATTER, 0); }
static PyObject *comm_iscatter(HOT) { return scatter(self, args, n, kwnames, CALL_ISCATTER, 1); }

static PyObject *all_to_all(HOT, int which, int starts, int kind, int send) {
  static const char *const names[] = {"sendbuf", "recvbuf", NULL};
  PyObject *a[2];
  collective c = {.which = which, .kind = kind, .starts = starts, .send = send, .recv = EQUAL_PARTS};
  const gm_comm_shape *shape = one_group((CommObject *)self);
  if (!shape || !request_class || match_args(names, 2, args, n, kwnames, a) < 0) FALL_BACK(which);
  c.send_in_place = a[0] == in_place;
  return run_collective(self, args, n, kwnames, &c, a[0], a[1], shape->size);
}

static PyObject *comm_allgather(HOT) {
  return all_to_all(self, args, n, kwnames, CALL_ALLGATHER, 0, GM_ALLGATHER, ONE_PART);
}

static PyObject *comm_iallgather(HOT) {
  return all_to_all(self, args, n, kwnames, CALL_IALLGATHER, 1, GM_ALLGATHER, ONE_PART);
}

static PyObject *comm_alltoall(HOT) {
  return all_to_all(self, args, n, kwnames, CALL_ALLTOALL, 0, GM_ALLTOALL, EQUAL_PARTS);
}

static PyObject *comm_ialltoall(HOT) {
  return all_to_all(self, args, n, kwnames, CALL_IALLTOALL, 1, GM_ALLTOALL, EQUAL_PARTS);
}

static PyObject *reduce(HOT, int which, int starts) {
  static const char *const names[] = {"sendbuf", "recvbuf", "op", "root", NULL};
  PyObject *a[4];
  collective c = {.which = which, .kind = GM_REDUCE, .starts = starts, .rooted = 1, .send = ONE_PART};
  const gm_comm_shape *shape = one_group((CommObject *)self);
  if (!shape || !request_class || match_args(names, 2, args, n, kwnames, a) < 0 || read_op(a[2], &c) < 0 ||
      parse_small_int(a[3], &c.root) < 0)
    FALL_BACK(which);
  if (c.root == shape->rank) c.recv = ONE_PART, c.send_in_place = a[0] == in_place;
  return run_collective(self, args, n, kwnames, &c, a[0], a[1], shape->size);
}

static PyObject *comm_reduce(HOT) { return reduce(self, args, n, kwnames, CALL_REDUCE, 0); }
static PyObject *comm_ireduce(HOT) { return reduce(self, args, n, kwnames, CALL_IREDUCE, 1); }

static PyObject *reduce_to_all(HOT, int which, int starts, int kind, int send) {
  static const char *const names[] = {"sendbuf", "recvbuf", "op", NULL};
  PyObject *a[3];
  collective c = {.which = which, .kind = kind, .starts = starts, .send = send, .recv = ONE_PART};
  const gm_comm_shape *shape = one_group((CommObject *)self);
  if (!shape || !request_class || match_args(names, 2, args, n, kwnames, a) < 0 || read_op(a[2], &c) < 0)
    FALL_BACK(which);
  if ((c.send_in_place = a[0] == in_place)) c.recv = send;
  return run_collective(self, args, n, kwnames, &c, a[0], a[1], shape->size);
}

static PyObject *comm_allreduce(HOT) {
  return reduce_to_all(self, args, n, kwnames, CALL_ALLREDUCE, 0, GM_ALLREDUCE, ONE_PART);
}

static PyObject *comm_iallreduce(HOT) {
  return reduce_to_all(self, args, n, kwnames, CALL_IALLREDUCE, 1, GM_ALLREDUCE, ONE_PART);
}

static PyObject *comm_reduce_scatter_block(HOT) {
  return reduce_to_all(self, args, n, kwnames, CALL_REDUCE_SCATTER_BLOCK, 0, GM_REDUCE_SCATTER_BLOCK, EQUAL_PARTS);
}

static PyObject *comm_ireduce_scatter_block(HOT) {
  return reduce_to_all(self, args, n, kwnames, CALL_IREDUCE_SCATTER_BLOCK, 1, GM_REDUCE_SCATTER_BLOCK, EQUAL_PARTS);
}

/* The usual counts are equal: then it is a Reduce_scatter_block, in Python, too. */
static PyObject *comm_reduce_scatter(HOT) {
  static const char *const names[] = {"sendbuf", "recvbuf", "recvcounts", "op", NULL};
  enum { MOST_RANKS = 64 };
  PyObject *a[4];
  int64_t counts[MOST_RANKS];
  collective c = {.which = CALL_REDUCE_SCATTER, .kind = GM_REDUCE_SCATTER_BLOCK, .send = EQUAL_PARTS, .recv = ONE_PART};
  const gm_comm_shape *shape = one_group((CommObject *)self);
  if (!shape || shape->size > MOST_RANKS || match_args(names, 3, args, n, kwnames, a) < 0 ||
      (c.op = op_number(a[3])) < 0)
    FALL_BACK(CALL_REDUCE_SCATTER);
  PyObject *list = Py_NewRef(a[2]);
  int usual = read_integers(list, shape->size, counts) == 0 && counts[0] >= 0;
  Py_DECREF(list);
  for (int i = 1; usual && i < shape->size; i++) usual = counts[i] == counts[0];
  if (!usual) FALL_BACK(CALL_REDUCE_SCATTER);
  c.items = counts[0] + 1;
  if ((c.send_in_place = a[0] == in_place)) c.recv = EQUAL_PARTS;
  return run_collective(self, args, n, kwnames, &c, a[0], a[1], shape->size);
}

static PyObject *comm_scan(HOT) { return reduce_to_all(self, args, n, kwnames, CALL_SCAN, 0, GM_SCAN, ONE_PART); }
static PyObject *comm_exscan(HOT) { return reduce_to_all(self, args, n, kwnames, CALL_EXSCAN, 0, GM_EXSCAN, ONE_PART); }

TRACED(comm_bcast, CALL_BCAST)
TRACED(comm_gather, CALL_GATHER)
TRACED(comm_scatter, CALL_SCATTER)
TRACED(comm_allgather, CALL_ALLGATHER)
TRACED(comm_alltoall, CALL_ALLTOALL)
TRACED(comm_reduce, CALL_REDUCE)
TRACED(comm_allreduce, CALL_ALLREDUCE)
TRACED(comm_reduce_scatter_block, CALL_REDUCE_SCATTER_BLOCK)
TRACED(comm_ibarrier, CALL_IBARRIER)
TRACED(comm_ibcast, CALL_IBCAST)
TRACED(comm_igather, CALL_IGATHER)
TRACED(comm_iscatter, CALL_ISCATTER)
TRACED(comm_iallgather, CALL_IALLGATHER)
TRACED(comm_ialltoall, CALL_IALLTOALL)
TRACED(comm_ireduce, CALL_IREDUCE)
TRACED(comm_iallreduce, CALL_IALLREDUCE)
TRACED(comm_ireduce_scatter_block, CALL_IREDUCE_SCATTER_BLOCK)
TRACED(comm_reduce_scatter, CALL_REDUCE_SCATTER)
PyMethodDef comm_coll_methods[] = {
    HOT_METHOD("Bcast", traced_comm_bcast, "($self, buf, root=0)"),
    HOT_METHOD("Gather", traced_comm_gather, "($self, sendbuf, recvbuf, root=0)"),
    HOT_METHOD("Scatter", traced_comm_scatter, "($self, sendbuf, recvbuf, root=0)"),
    HOT_METHOD("Allgather", traced_comm_allgather, "($self, sendbuf, recvbuf)"),
    HOT_METHOD("Alltoall", traced_comm_alltoall, "($self, sendbuf, recvbuf)"),
    HOT_METHOD("Reduce", traced_comm_reduce, "($self, sendbuf, recvbuf, op=..., root=0)"),
    HOT_METHOD("Allreduce", traced_comm_allreduce, "($self, sendbuf, recvbuf, op=...)"),
    HOT_METHOD("Reduce_scatter_block", traced_comm_reduce_scatter_block, "($self, sendbuf, recvbuf, op=...)"),
    HOT_METHOD("Ibarrier", traced_comm_ibarrier, "($self)"),
    HOT_METHOD("Ibcast", traced_comm_ibcast, "($self, buf, root=0)"),
    HOT_METHOD("Igather", traced_comm_igather, "($self, sendbuf, recvbuf, root=0)"),
    HOT_METHOD("Iscatter", traced_comm_iscatter, "($self, sendbuf, recvbuf, root=0)"),
    HOT_METHOD("Iallgather", traced_comm_iallgather, "($self, sendbuf, recvbuf)"),
    HOT_METHOD("Ialltoall", traced_comm_ialltoall, "($self, sendbuf, recvbuf)"),
    HOT_METHOD("Ireduce", traced_comm_ireduce, "($self, sendbuf, recvbuf, op=..., root=0)"),
    HOT_METHOD("Iallreduce", traced_comm_iallreduce, "($self, sendbuf, recvbuf, op=...)"),
    HOT_METHOD("Ireduce_scatter_block", traced_comm_ireduce_scatter_block, "($self, sendbuf, recvbuf, op=...)"),
    HOT_METHOD("Reduce_scatter", traced_comm_reduce_scatter, "($self, sendbuf, recvbuf, recvcounts=None, op=...)"),
    {0}};
/* Traces find these in a class of Python, and record them as they do other methods there. */
PyMethodDef intracomm_methods[] = {HOT_METHOD("Scan", comm_scan, "($self, sendbuf, recvbuf, op=...)"),
                                   HOT_METHOD("Exscan", comm_exscan, "($self, sendbuf, recvbuf, op=...)"),
                                   {0}};
