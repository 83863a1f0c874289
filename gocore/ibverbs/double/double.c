/* A double of libibverbs: reliable connections between queue pairs of one
 * process, with keys, bounds and rights checked, statuses, flushes, full queues
 * and completion events as the verbs have them. Faults can be made to happen.
 * One lock guards all of it. */
#include "double.h"

#include "../abi.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEVICES = 2, MAX_OBJECTS = 4096, INLINE_ROOM = 512, MOST_SENDS = 16384 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int64_t counts[DOUBLE_COUNTS];
static int faults[DOUBLE_FAULTS];

struct request {
  uint64_t id, addr, remote, add, swap;
  uint32_t len, lkey, rkey, imm, seq;
  int opcode, flags;
  char data[INLINE_ROOM];
};

struct receive {
  uint64_t id, addr;
  uint32_t len, lkey;
};

struct completion {
  struct ibv_wc wc;
  struct queue_pair *sender; /* whose requests up to seq it ends */
  uint32_t seq;
};

struct completion_queue {
  struct ibv_cq base;
  struct completion *ring;
  uint32_t head, tail;
  int armed, overrun;
};

struct receive_queue {
  struct ibv_srq base;
  struct receive *ring;
  uint32_t size, head, tail;
};

struct queue_pair {
  struct ibv_qp base;
  struct request *ring;
  struct receive_queue own, *from;
  uint32_t size, done, posted, retired; /* done <= posted, retired: whose completion was polled */
  uint32_t peer, max_inline;
  int access, rnr_retry, dead;
};

struct region {
  struct ibv_mr base;
  int access;
};

static struct ibv_device devices[DEVICES];
static struct queue_pair *pairs[MAX_OBJECTS]; /* by number */
static struct region *regions[MAX_OBJECTS];   /* by key */
static uint32_t generation;

static void made(int what) {
  counts[DOUBLE_OBJECTS]++;
  if (what != DOUBLE_OBJECTS) counts[what]++;
}
static void freed(int what) {
  counts[DOUBLE_OBJECTS]--;
  if (what != DOUBLE_OBJECTS) counts[what]--;
}

/* ---- devices ---- */

static struct ibv_device **get_device_list(int *n) {
  if (faults[DOUBLE_NO_DEVICES] > 0) {
    errno = faults[DOUBLE_NO_DEVICES];
    return NULL;
  }
  struct ibv_device **list = calloc(DEVICES + 1, sizeof *list);
  *n = faults[DOUBLE_NO_DEVICES] ? 0 : DEVICES;
  for (int i = 0; i < *n; i++) {
    snprintf(devices[i].name, sizeof devices[i].name, "double%d", i);
    list[i] = &devices[i];
  }
  return list;
}

static void free_device_list(struct ibv_device **list) { free(list); }
static const char *get_device_name(struct ibv_device *d) { return d->name; }

struct opened {
  struct verbs_context v;
  int events;
};

static int poll_cq(struct ibv_cq *base, int n, struct ibv_wc *wcs);
static int req_notify_cq(struct ibv_cq *base, int solicited_only);
static int post_srq_recv(struct ibv_srq *base, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
static int post_send(struct ibv_qp *base, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
static int post_recv(struct ibv_qp *base, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

static int query_device(struct ibv_context *c, struct ibv_device_attr *a) {
  (void)c;
  memset(a, 0, sizeof *a);
  strcpy(a->fw_ver, "double");
  a->phys_port_cnt = 1;
  a->max_qp = MAX_OBJECTS, a->max_qp_wr = MOST_SENDS, a->max_sge = 1, a->max_cq = 64, a->max_cqe = 32767;
  a->max_mr = MAX_OBJECTS, a->max_pd = 64, a->max_qp_rd_atom = a->max_qp_init_rd_atom = 16;
  a->max_srq = 64, a->max_srq_wr = 4096, a->max_mr_size = UINT64_MAX;
  a->atomic_cap = faults[DOUBLE_NO_ATOMICS] ? IBV_ATOMIC_NONE : IBV_ATOMIC_HCA;
  return 0;
}

static int query_device_ex(struct ibv_context *c, const void *input, struct ibv_device_attr_ex *a, size_t n) {
  (void)input;
  memset(a, 0, n);
  if (faults[DOUBLE_ODP]) {
    a->odp_caps.general_caps = IBV_ODP_SUPPORT;
    a->odp_caps.per_transport_caps.rc_odp_caps = IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ;
  }
  return query_device(c, &a->orig_attr);
}

static struct ibv_context *open_device(struct ibv_device *d) {
  struct opened *o = calloc(1, sizeof *o);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC)) abort();
  o->v.sz = sizeof o->v;
  o->v.query_device_ex = query_device_ex;
  struct ibv_context *c = &o->v.context;
  c->device = d;
  c->abi_compat = (void *)UINTPTR_MAX;
  c->async_fd = ends[0];
  o->events = ends[1];
  c->ops.poll_cq = poll_cq;
  c->ops.req_notify_cq = req_notify_cq;
  c->ops.post_srq_recv = post_srq_recv;
  c->ops.post_send = post_send;
  c->ops.post_recv = post_recv;
  pthread_mutex_lock(&lock);
  made(DOUBLE_OBJECTS);
  pthread_mutex_unlock(&lock);
  return c;
}

static struct opened *opened(struct ibv_context *c) {
  return (struct opened *)((char *)c - offsetof(struct opened, v.context));
}

static int close_device(struct ibv_context *c) {
  struct opened *o = opened(c);
  pthread_mutex_lock(&lock);
  freed(DOUBLE_OBJECTS);
  pthread_mutex_unlock(&lock);
  close(c->async_fd);
  close(o->events);
  free(o);
  return 0;
}

static int query_port(struct ibv_context *c, uint8_t port, struct ibv_port_attr *a) {
  (void)c;
  if (port != 1) return EINVAL;
  memset(a, 0, sizeof *a);
  a->state = faults[DOUBLE_DOWN] ? 1 : IBV_PORT_ACTIVE;
  a->max_mtu = a->active_mtu = 5;
  a->gid_tbl_len = 2;
  a->max_msg_sz = faults[DOUBLE_MAX_MSG] ? (uint32_t)faults[DOUBLE_MAX_MSG] : 1u << 30;
  a->link_layer = IBV_LINK_LAYER_ETHERNET;
  return 0;
}

static int query_gid(struct ibv_context *c, uint8_t port, int index, union ibv_gid *gid) {
  if (port != 1 || index < 0 || index > 1) return errno = EINVAL, -1;
  memset(gid, 0, sizeof *gid);
  if (index == 0) {
    gid->raw[0] = 0xfe, gid->raw[1] = 0x80, gid->raw[15] = 1;
  } else {
    gid->raw[10] = gid->raw[11] = 0xff, gid->raw[12] = 10, gid->raw[15] = (uint8_t)(1 + (c->device - devices));
  }
  return 0;
}

static int get_async_event(struct ibv_context *c, struct ibv_async_event *e) {
  return read(c->async_fd, e, sizeof *e) == sizeof *e ? 0 : -1;
}
static void ack_async_event(struct ibv_async_event *e) { (void)e; }

static void event(struct queue_pair *q, int type) {
  struct ibv_async_event e = {.element = {.qp = &q->base}, .event_type = type};
  if (write(opened(q->base.context)->events, &e, sizeof e) != sizeof e) abort();
}

/* ---- domains and regions ---- */

static struct ibv_pd *alloc_pd(struct ibv_context *c) {
  struct ibv_pd *pd = calloc(1, sizeof *pd);
  pd->context = c;
  pthread_mutex_lock(&lock);
  made(DOUBLE_OBJECTS);
  pthread_mutex_unlock(&lock);
  return pd;
}

static int dealloc_pd(struct ibv_pd *pd) {
  pthread_mutex_lock(&lock);
  int busy = 0;
  for (int i = 0; i < MAX_OBJECTS; i++)
    busy |= (regions[i] && regions[i]->base.pd == pd) || (pairs[i] && pairs[i]->base.pd == pd);
  if (!busy) freed(DOUBLE_OBJECTS);
  pthread_mutex_unlock(&lock);
  if (busy) return EBUSY;
  free(pd);
  return 0;
}

static struct ibv_mr *reg_mr(struct ibv_pd *pd, void *addr, size_t n, int access) {
  int refused = faults[DOUBLE_NO_REGIONS];
  if (access & IBV_ACCESS_REMOTE_ATOMIC && faults[DOUBLE_NO_ATOMIC_KEYS]) refused = faults[DOUBLE_NO_ATOMIC_KEYS];
  if (faults[DOUBLE_ODP] && !(access & IBV_ACCESS_ON_DEMAND)) refused = ENOMEM;
  if (!faults[DOUBLE_ODP] && access & IBV_ACCESS_ON_DEMAND) refused = EOPNOTSUPP;
  if (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC) && !(access & IBV_ACCESS_LOCAL_WRITE)) refused = EINVAL;
  if (refused) return errno = refused, NULL;
  pthread_mutex_lock(&lock);
  struct region *m = NULL;
  for (uint32_t i = 1; i < MAX_OBJECTS && !m; i++) {
    if (regions[i]) continue;
    m = regions[i] = calloc(1, sizeof *m);
    /* The low byte changes, so that a key is not that of a later region. */
    m->base = (struct ibv_mr){.context = pd->context, .pd = pd, .addr = addr, .length = n};
    m->base.lkey = m->base.rkey = i << 8 | (generation++ & 0xff);
    m->access = access;
    made(DOUBLE_REGIONS);
  }
  pthread_mutex_unlock(&lock);
  if (!m) return errno = ENOMEM, NULL;
  return &m->base;
}

static int dereg_mr(struct ibv_mr *mr) {
  pthread_mutex_lock(&lock);
  regions[mr->lkey >> 8] = NULL;
  freed(DOUBLE_REGIONS);
  pthread_mutex_unlock(&lock);
  free(mr);
  return 0;
}

static int allowed(struct ibv_pd *pd, uint32_t key, uint64_t addr, uint64_t n, int access) {
  struct region *m = key >> 8 < MAX_OBJECTS ? regions[key >> 8] : NULL;
  if (!m || m->base.lkey != key || m->base.pd != pd || (m->access & access) != access) return 0;
  uint64_t start = (uint64_t)(uintptr_t)m->base.addr;
  return addr >= start && n <= m->base.length && addr - start <= m->base.length - n;
}

/* ---- completion queues ---- */

static struct ibv_comp_channel *create_comp_channel(struct ibv_context *c) {
  struct ibv_comp_channel *ch = calloc(1, sizeof *ch);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC)) abort();
  ch->context = c;
  ch->fd = ends[0];
  ch->refcnt = ends[1]; /* the double's own use of it */
  pthread_mutex_lock(&lock);
  made(DOUBLE_OBJECTS);
  pthread_mutex_unlock(&lock);
  return ch;
}

static int destroy_comp_channel(struct ibv_comp_channel *ch) {
  close(ch->fd);
  close(ch->refcnt);
  pthread_mutex_lock(&lock);
  freed(DOUBLE_OBJECTS);
  pthread_mutex_unlock(&lock);
  free(ch);
  return 0;
}

static int get_cq_event(struct ibv_comp_channel *ch, struct ibv_cq **cq, void **context) {
  *context = NULL;
  return read(ch->fd, cq, sizeof *cq) == sizeof *cq ? 0 : -1;
}
static void ack_cq_events(struct ibv_cq *cq, unsigned int n) { cq->comp_events_completed += n; }

static struct ibv_cq *create_cq(struct ibv_context *c, int depth, void *context, struct ibv_comp_channel *ch, int vector) {
  (void)vector;
  struct completion_queue *q = calloc(1, sizeof *q);
  q->base = (struct ibv_cq){.context = c, .channel = ch, .cq_context = context, .cqe = depth};
  q->ring = calloc((size_t)depth, sizeof *q->ring);
  pthread_mutex_lock(&lock);
  made(DOUBLE_OBJECTS);
  pthread_mutex_unlock(&lock);
  return &q->base;
}

static int destroy_cq(struct ibv_cq *base) {
  struct completion_queue *q = (struct completion_queue *)base;
  pthread_mutex_lock(&lock);
  int busy = 0;
  for (int i = 0; i < MAX_OBJECTS; i++)
    busy |= pairs[i] && (pairs[i]->base.send_cq == base || pairs[i]->base.recv_cq == base);
  if (!busy) freed(DOUBLE_OBJECTS);
  pthread_mutex_unlock(&lock);
  if (busy) return EBUSY;
  free(q->ring);
  free(q);
  return 0;
}

static void push(struct ibv_cq *base, struct completion c) {
  struct completion_queue *q = (struct completion_queue *)base;
  if (q->tail - q->head == (uint32_t)q->base.cqe) {
    q->overrun = 1;
    return;
  }
  q->ring[q->tail++ % (uint32_t)q->base.cqe] = c;
  if (!q->armed) return;
  q->armed = 0;
  if (write(base->channel->refcnt, &base, sizeof base) != sizeof base) abort();
}

static int req_notify_cq(struct ibv_cq *base, int solicited_only) {
  (void)solicited_only;
  pthread_mutex_lock(&lock);
  ((struct completion_queue *)base)->armed = base->channel != NULL;
  pthread_mutex_unlock(&lock);
  return 0;
}

static void work(struct queue_pair *q, int most);

static void work_all(int most) {
  for (int i = 0; i < MAX_OBJECTS; i++)
    if (pairs[i]) work(pairs[i], most);
}

static int poll_cq(struct ibv_cq *base, int n, struct ibv_wc *wcs) {
  struct completion_queue *q = (struct completion_queue *)base;
  int got = 0;
  pthread_mutex_lock(&lock);
  counts[DOUBLE_POLLS]++;
  if (q->overrun) got = -1, errno = EOVERFLOW;
  while (got >= 0 && got < n && q->head != q->tail) {
    struct completion *c = &q->ring[q->head++ % (uint32_t)q->base.cqe];
    wcs[got++] = c->wc;
    if (c->sender && (int32_t)(c->seq + 1 - c->sender->retired) > 0) c->sender->retired = c->seq + 1;
  }
  pthread_mutex_unlock(&lock);
  return got;
}

/* ---- queue pairs ---- */

static int take(struct receive_queue *r, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) {
  int e = 0;
  pthread_mutex_lock(&lock);
  for (; wr && !e; wr = wr->next) {
    if (r->tail - r->head == r->size || wr->num_sge > 1) {
      e = wr->num_sge > 1 ? EINVAL : ENOMEM;
      *bad = wr;
      break;
    }
    struct receive *to = &r->ring[r->tail++ % r->size];
    *to = (struct receive){.id = wr->wr_id};
    if (wr->num_sge) *to = (struct receive){wr->wr_id, wr->sg_list->addr, wr->sg_list->length, wr->sg_list->lkey};
  }
  if (!faults[DOUBLE_LAZY]) work_all(1 << 30);
  pthread_mutex_unlock(&lock);
  return e;
}

static int post_srq_recv(struct ibv_srq *base, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) {
  return take((struct receive_queue *)base, wr, bad);
}
static int post_recv(struct ibv_qp *base, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) {
  struct queue_pair *q = (struct queue_pair *)base;
  if (q->base.state == IBV_QPS_RESET || q->from != &q->own) return *bad = wr, EINVAL;
  return take(q->from, wr, bad);
}

static struct ibv_srq *create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *a) {
  struct receive_queue *r = calloc(1, sizeof *r);
  r->base.context = pd->context, r->base.pd = pd;
  r->size = a->attr.max_wr;
  r->ring = calloc(r->size, sizeof *r->ring);
  pthread_mutex_lock(&lock);
  made(DOUBLE_OBJECTS);
  pthread_mutex_unlock(&lock);
  return &r->base;
}

static int destroy_srq(struct ibv_srq *base) {
  struct receive_queue *r = (struct receive_queue *)base;
  pthread_mutex_lock(&lock);
  int busy = 0;
  for (int i = 0; i < MAX_OBJECTS; i++) busy |= pairs[i] && pairs[i]->from == r;
  if (!busy) freed(DOUBLE_OBJECTS);
  pthread_mutex_unlock(&lock);
  if (busy) return EBUSY;
  free(r->ring);
  free(r);
  return 0;
}

static struct ibv_qp *create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *a) {
  uint32_t most = INLINE_ROOM;
  if (faults[DOUBLE_MAX_INLINE]) most = faults[DOUBLE_MAX_INLINE] < 0 ? 0 : (uint32_t)faults[DOUBLE_MAX_INLINE];
  if (a->cap.max_inline_data > most || a->cap.max_send_wr > MOST_SENDS) return errno = EINVAL, NULL;
  struct queue_pair *q = calloc(1, sizeof *q);
  q->size = a->cap.max_send_wr;
  q->max_inline = a->cap.max_inline_data;
  q->ring = calloc(q->size, sizeof *q->ring);
  q->base = (struct ibv_qp){.context = pd->context, .pd = pd, .send_cq = a->send_cq, .recv_cq = a->recv_cq, .srq = a->srq,
                            .qp_type = a->qp_type};
  q->from = (struct receive_queue *)a->srq;
  if (!a->srq) {
    q->own.size = a->cap.max_recv_wr ? a->cap.max_recv_wr : 1;
    q->own.ring = calloc(q->own.size, sizeof *q->own.ring);
    q->from = &q->own;
  }
  pthread_mutex_lock(&lock);
  static uint32_t next = 17;
  for (int tries = 0; tries < MAX_OBJECTS && !q->base.qp_num; tries++) {
    next = next % (MAX_OBJECTS - 1) + 1;
    if (!pairs[next]) pairs[q->base.qp_num = next] = q;
  }
  made(DOUBLE_QPS);
  pthread_mutex_unlock(&lock);
  return &q->base;
}

static int destroy_qp(struct ibv_qp *base) {
  struct queue_pair *q = (struct queue_pair *)base;
  pthread_mutex_lock(&lock);
  pairs[base->qp_num] = NULL;
  struct completion_queue *cqs[] = {(struct completion_queue *)base->send_cq, (struct completion_queue *)base->recv_cq};
  for (int k = 0; k < 2; k++)
    for (uint32_t i = cqs[k]->head; i != cqs[k]->tail; i++) {
      struct completion *c = &cqs[k]->ring[i % (uint32_t)cqs[k]->base.cqe];
      if (c->sender == q) c->sender = NULL;
    }
  freed(DOUBLE_QPS);
  pthread_mutex_unlock(&lock);
  free(q->ring);
  free(q->own.ring);
  free(q);
  return 0;
}

static void finish(struct queue_pair *q, struct request *r, int status) {
  static const int opcodes[] = {IBV_WC_RDMA_WRITE, IBV_WC_RDMA_WRITE, IBV_WC_SEND,     IBV_WC_SEND,
                                IBV_WC_RDMA_READ,  IBV_WC_COMP_SWAP,  IBV_WC_FETCH_ADD};
  struct completion c = {.sender = q, .seq = r->seq};
  c.wc = (struct ibv_wc){.wr_id = r->id, .status = status, .opcode = opcodes[r->opcode], .byte_len = r->len,
                         .qp_num = q->base.qp_num};
  q->done++;
  if (status || r->flags & IBV_SEND_SIGNALED) push(q->base.send_cq, c);
}

/* To the error state: all that waits is flushed. */
static void fail(struct queue_pair *q) {
  q->base.state = IBV_QPS_ERR;
  if (faults[DOUBLE_NO_FLUSH]) q->done = q->posted;
  while (q->done != q->posted) finish(q, &q->ring[q->done % q->size], IBV_WC_WR_FLUSH_ERR);
  for (; q->from == &q->own && q->own.head != q->own.tail; q->own.head++) {
    struct completion c = {.wc = {.wr_id = q->own.ring[q->own.head % q->own.size].id, .status = IBV_WC_WR_FLUSH_ERR,
                                  .opcode = IBV_WC_RECV, .qp_num = q->base.qp_num}};
    push(q->base.recv_cq, c);
  }
}

static void move(void *to, const void *from, size_t n) { memmove(to, from, n); }

/* -1: it must wait. */
static int execute(struct queue_pair *q, struct request *r) {
  struct queue_pair *p = q->peer < MAX_OBJECTS ? pairs[q->peer] : NULL;
  void *local = r->flags & IBV_SEND_INLINE ? (void *)r->data : (void *)(uintptr_t)r->addr;
  void *remote = (void *)(uintptr_t)r->remote;
  int reads = r->opcode >= IBV_WR_RDMA_READ;
  if (faults[DOUBLE_WC_STATUS] && --faults[DOUBLE_WC_AFTER] < 0) {
    int status = faults[DOUBLE_WC_STATUS];
    faults[DOUBLE_WC_STATUS] = 0;
    return status;
  }
  if (r->len && !(r->flags & IBV_SEND_INLINE) &&
      !allowed(q->base.pd, r->lkey, r->addr, r->len, reads ? IBV_ACCESS_LOCAL_WRITE : 0))
    return IBV_WC_LOC_PROT_ERR;
  if (!p || p->dead || p->peer != q->base.qp_num || p->base.state < IBV_QPS_RTR || p->base.state == IBV_QPS_ERR)
    return IBV_WC_RETRY_EXC_ERR;
  int needs = 0;
  switch (r->opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      needs = IBV_ACCESS_REMOTE_WRITE;
      break;
    case IBV_WR_RDMA_READ:
      needs = IBV_ACCESS_REMOTE_READ;
      break;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      needs = IBV_ACCESS_REMOTE_ATOMIC;
      if (r->remote % 8) return fail(p), IBV_WC_REM_INV_REQ_ERR;
      break;
    default:
      break;
  }
  if (needs && (r->len || needs == IBV_ACCESS_REMOTE_ATOMIC) &&
      (!(p->access & needs) || !allowed(p->base.pd, r->rkey, r->remote, r->len, needs))) {
    event(p, IBV_EVENT_QP_ACCESS_ERR);
    return fail(p), IBV_WC_REM_ACCESS_ERR;
  }
  int immediate = r->opcode == IBV_WR_RDMA_WRITE_WITH_IMM || r->opcode == IBV_WR_SEND_WITH_IMM;
  int receives = immediate || r->opcode == IBV_WR_SEND;
  struct receive *to = NULL;
  if (receives) {
    if (p->from->head == p->from->tail) return q->rnr_retry == 7 ? -1 : IBV_WC_RNR_RETRY_EXC_ERR;
    to = &p->from->ring[p->from->head++ % p->from->size];
  }
  struct completion c = {.wc = {.wr_id = to ? to->id : 0, .opcode = IBV_WC_RECV, .byte_len = r->len,
                                .qp_num = p->base.qp_num, .src_qp = q->base.qp_num}};
  if (immediate) c.wc.imm_data = r->imm, c.wc.wc_flags = IBV_WC_WITH_IMM;
  switch (r->opcode) {
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      c.wc.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
      move(remote, local, r->len);
      break;
    case IBV_WR_RDMA_WRITE:
      move(remote, local, r->len);
      break;
    case IBV_WR_RDMA_READ:
      move(local, remote, r->len);
      break;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      *(uint64_t *)local = __atomic_fetch_add((uint64_t *)remote, r->add, __ATOMIC_SEQ_CST);
      break;
    case IBV_WR_ATOMIC_CMP_AND_SWP: {
      uint64_t old = r->add;
      __atomic_compare_exchange_n((uint64_t *)remote, &old, r->swap, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
      *(uint64_t *)local = old;
      break;
    }
    default:
      if (r->len > to->len || (r->len && !allowed(p->base.pd, to->lkey, to->addr, r->len, IBV_ACCESS_LOCAL_WRITE))) {
        c.wc.status = r->len > to->len ? IBV_WC_LOC_LEN_ERR : IBV_WC_LOC_PROT_ERR;
        push(p->base.recv_cq, c);
        return fail(p), IBV_WC_REM_INV_REQ_ERR;
      }
      move((void *)(uintptr_t)to->addr, local, r->len);
  }
  if (receives) push(p->base.recv_cq, c);
  return IBV_WC_SUCCESS;
}

static void work(struct queue_pair *q, int most) {
  if (faults[DOUBLE_HOLD]) return;
  for (; most > 0 && q->base.state == IBV_QPS_RTS && q->done != q->posted; most--) {
    struct request *r = &q->ring[q->done % q->size];
    int status = execute(q, r);
    if (status < 0) return;
    finish(q, r, status);
    if (status) fail(q);
  }
}

static int modify_qp(struct ibv_qp *base, struct ibv_qp_attr *a, int mask) {
  struct queue_pair *q = (struct queue_pair *)base;
  int e = 0, from = base->state, to = mask & IBV_QP_STATE ? a->qp_state : base->state;
  pthread_mutex_lock(&lock);
  if (to == IBV_QPS_ERR) {
    fail(q);
  } else if (to == IBV_QPS_RESET) {
    q->done = q->retired = q->posted;
  } else if (to != from + 1 || (to == IBV_QPS_RTR && (a->dest_qp_num == 0 || !a->ah_attr.is_global))) {
    e = EINVAL;
  } else {
    if (mask & IBV_QP_ACCESS_FLAGS) q->access = (int)a->qp_access_flags;
    if (mask & IBV_QP_DEST_QPN) q->peer = a->dest_qp_num;
    if (mask & IBV_QP_RNR_RETRY) q->rnr_retry = a->rnr_retry;
  }
  if (!e) base->state = to;
  pthread_mutex_unlock(&lock);
  return e;
}

static int query_qp(struct ibv_qp *base, struct ibv_qp_attr *a, int mask, struct ibv_qp_init_attr *init) {
  (void)mask, (void)init;
  pthread_mutex_lock(&lock);
  a->qp_state = base->state;
  a->dest_qp_num = ((struct queue_pair *)base)->peer;
  pthread_mutex_unlock(&lock);
  return 0;
}

static void count(const struct request *r) {
  switch (r->opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      counts[r->len ? DOUBLE_WRITES : DOUBLE_EMPTY]++;
      break;
    case IBV_WR_RDMA_READ:
      counts[DOUBLE_READS]++;
      break;
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
      counts[DOUBLE_SENDS]++;
      break;
    default:
      counts[DOUBLE_ATOMICS]++;
  }
  if (r->flags & IBV_SEND_SIGNALED) counts[DOUBLE_SIGNALED]++;
}

static int post_send(struct ibv_qp *base, struct ibv_send_wr *wr, struct ibv_send_wr **bad) {
  struct queue_pair *q = (struct queue_pair *)base;
  int e = 0;
  pthread_mutex_lock(&lock);
  counts[DOUBLE_DOORBELLS]++;
  for (; wr; wr = wr->next) {
    uint32_t n = wr->num_sge ? wr->sg_list->length : 0;
    int most = faults[DOUBLE_MAX_MSG] ? faults[DOUBLE_MAX_MSG] : 1 << 30;
    if (base->state != IBV_QPS_RTS && base->state != IBV_QPS_ERR) e = EINVAL;
    if (q->posted - q->retired == q->size) e = ENOMEM;
    if (n > (uint32_t)most || (wr->send_flags & IBV_SEND_INLINE && n > q->max_inline)) e = EINVAL;
    if (!e && faults[DOUBLE_POST_ERRNO] && --faults[DOUBLE_POST_AFTER] < 0) {
      e = faults[DOUBLE_POST_ERRNO];
      faults[DOUBLE_POST_ERRNO] = 0;
    }
    if (e) {
      *bad = wr;
      break;
    }
    struct request *r = &q->ring[q->posted % q->size];
    *r = (struct request){.id = wr->wr_id, .opcode = wr->opcode, .flags = (int)wr->send_flags, .imm = wr->imm_data,
                          .seq = q->posted, .len = n};
    if (n) r->addr = wr->sg_list->addr, r->lkey = wr->sg_list->lkey;
    if (wr->opcode >= IBV_WR_ATOMIC_CMP_AND_SWP) {
      r->remote = wr->wr.atomic.remote_addr, r->rkey = wr->wr.atomic.rkey;
      r->add = wr->wr.atomic.compare_add, r->swap = wr->wr.atomic.swap;
    } else {
      r->remote = wr->wr.rdma.remote_addr, r->rkey = wr->wr.rdma.rkey;
    }
    if (wr->send_flags & IBV_SEND_INLINE) memcpy(r->data, (void *)(uintptr_t)r->addr, n);
    count(r);
    q->posted++;
  }
  if (base->state == IBV_QPS_ERR) fail(q);
  if (!faults[DOUBLE_LAZY]) work(q, 1 << 30);
  pthread_mutex_unlock(&lock);
  return e;
}

/* ---- the table, counts and faults ---- */

void *double_find(void *handle, const char *name) {
  (void)handle;
#define X(f) \
  if (!strcmp(name, "ibv_" #f)) return (void *)f;
  X(get_device_list) X(free_device_list) X(get_device_name) X(open_device) X(close_device) X(query_device) X(query_port)
  X(query_gid) X(get_async_event) X(ack_async_event) X(alloc_pd) X(dealloc_pd) X(reg_mr) X(dereg_mr)
  X(create_comp_channel) X(destroy_comp_channel) X(create_cq) X(destroy_cq) X(get_cq_event) X(ack_cq_events)
  X(create_srq) X(destroy_srq) X(create_qp) X(modify_qp) X(query_qp) X(destroy_qp)
#undef X
  return NULL;
}

int64_t double_count(int what) {
  pthread_mutex_lock(&lock);
  int64_t n = counts[what];
  pthread_mutex_unlock(&lock);
  return n;
}

void double_reset(void) {
  pthread_mutex_lock(&lock);
  for (int i = 0; i < DOUBLE_REGIONS; i++) counts[i] = 0;
  memset(faults, 0, sizeof faults);
  pthread_mutex_unlock(&lock);
}

/* The device that takes its time. */
static void *device(void *unused) {
  (void)unused;
  for (int on = 1; on; usleep(10)) {
    pthread_mutex_lock(&lock);
    on = faults[DOUBLE_LAZY];
    work_all(on ? on : 1 << 30);
    pthread_mutex_unlock(&lock);
  }
  return NULL;
}

void double_fault(int which, int value) {
  pthread_t thread;
  pthread_mutex_lock(&lock);
  if (which == DOUBLE_LAZY && value && !faults[DOUBLE_LAZY]) {
    if (pthread_create(&thread, NULL, device, NULL)) abort();
    pthread_detach(thread);
  }
  faults[which] = value;
  if (which == DOUBLE_HOLD && !value) work_all(1 << 30);
  pthread_mutex_unlock(&lock);
}

void double_kill(uint32_t qp_num) {
  pthread_mutex_lock(&lock);
  if (qp_num < MAX_OBJECTS && pairs[qp_num]) pairs[qp_num]->dead = 1;
  pthread_mutex_unlock(&lock);
}
