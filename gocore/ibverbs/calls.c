/* The verbs as Go calls them: see calls.h. */
#include "calls.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Providers return an errno, its negative, or -1 with errno set. */
static int code(int r) {
  if (r == 0) return 0;
  if (r > 0) return r;
  if (r == -1 && errno) return errno;
  return -r;
}

/* For calls that return NULL and set errno, which some providers forget to. */
static int failed(void) { return errno ? errno : EIO; }

char *gmv_load(struct gmv_lib *lib, gmv_find find, void *handle) {
  char *why = NULL;
#define X(ret, name, args)                                                        \
  *(void **)&lib->name = find(handle, "ibv_" #name);                              \
  if (!lib->name && !why && asprintf(&why, "it has no function ibv_" #name) < 0) why = strdup("no memory");
  GMV_SYMBOLS(X)
#undef X
  return why;
}

char *gmv_open(const char *file, struct gmv_lib *lib) {
  void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char *why = dlerror();
    return strdup(why ? why : "dlopen failed");
  }
  char *why = gmv_load(lib, dlsym, handle);
  if (why) dlclose(handle);
  return why;
}

int gmv_devices(const struct gmv_lib *l, struct ibv_device ***list, int *n) {
  *n = 0;
  errno = 0;
  *list = l->get_device_list(n);
  return *list ? 0 : failed();
}

void gmv_free_devices(const struct gmv_lib *l, struct ibv_device **list) { l->free_device_list(list); }

const char *gmv_device_name(const struct gmv_lib *l, struct ibv_device **list, int i) {
  return l->get_device_name(list[i]);
}

static int nonblocking(int fd) {
  int flags = fcntl(fd, F_GETFL);
  return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ? errno : 0;
}

int gmv_open_device(const struct gmv_lib *l, struct ibv_device **list, int i, struct ibv_context **out) {
  errno = 0;
  *out = l->open_device(list[i]);
  if (!*out) return failed();
  int e = nonblocking((*out)->async_fd);
  if (e) {
    l->close_device(*out);
    *out = NULL;
  }
  return e;
}

int gmv_close_device(const struct gmv_lib *l, struct ibv_context *c) {
  errno = 0;
  return code(l->close_device(c));
}

int gmv_query_device(const struct gmv_lib *l, struct ibv_context *c, struct ibv_device_attr_ex *out) {
  memset(out, 0, sizeof *out);
  /* On-demand paging is told by the extended verb only. */
  if (c->abi_compat == (void *)UINTPTR_MAX) {
    struct verbs_context *v = (struct verbs_context *)((char *)c - offsetof(struct verbs_context, context));
    if (v->sz >= sizeof *v && v->query_device_ex && v->query_device_ex(c, NULL, out, sizeof *out) == 0) return 0;
    memset(out, 0, sizeof *out);
  }
  errno = 0;
  return code(l->query_device(c, &out->orig_attr));
}

int gmv_query_port(const struct gmv_lib *l, struct ibv_context *c, int port, struct ibv_port_attr *out) {
  memset(out, 0, sizeof *out);
  errno = 0;
  return code(l->query_port(c, (uint8_t)port, out));
}

int gmv_query_gid(const struct gmv_lib *l, struct ibv_context *c, int port, int index, uint8_t *raw) {
  union ibv_gid gid;
  errno = 0;
  int e = code(l->query_gid(c, (uint8_t)port, index, &gid));
  if (!e) memcpy(raw, gid.raw, sizeof gid.raw);
  return e;
}

int gmv_async_event(const struct gmv_lib *l, struct ibv_context *c, int *type, uint32_t *qp_num, int *port) {
  struct ibv_async_event event;
  errno = 0;
  if (l->get_async_event(c, &event)) return failed();
  *type = event.event_type, *qp_num = 0, *port = 0;
  switch (event.event_type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      *qp_num = event.element.qp->qp_num;
      break;
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
    case IBV_EVENT_GID_CHANGE:
      *port = event.element.port_num;
      break;
    default:
      break;
  }
  l->ack_async_event(&event);
  return 0;
}

int gmv_alloc_pd(const struct gmv_lib *l, struct ibv_context *c, struct ibv_pd **out) {
  errno = 0;
  *out = l->alloc_pd(c);
  return *out ? 0 : failed();
}

int gmv_dealloc_pd(const struct gmv_lib *l, struct ibv_pd *pd) {
  errno = 0;
  return code(l->dealloc_pd(pd));
}

int gmv_reg_mr(const struct gmv_lib *l, struct ibv_pd *pd, uint64_t addr, size_t n, int access, struct ibv_mr **out) {
  errno = 0;
  *out = l->reg_mr(pd, (void *)(uintptr_t)addr, n, access);
  return *out ? 0 : failed();
}

int gmv_dereg_mr(const struct gmv_lib *l, struct ibv_mr *mr) {
  errno = 0;
  return code(l->dereg_mr(mr));
}

int gmv_create_channel(const struct gmv_lib *l, struct ibv_context *c, struct ibv_comp_channel **out) {
  errno = 0;
  *out = l->create_comp_channel(c);
  if (!*out) return failed();
  int e = nonblocking((*out)->fd);
  if (e) {
    l->destroy_comp_channel(*out);
    *out = NULL;
  }
  return e;
}

int gmv_destroy_channel(const struct gmv_lib *l, struct ibv_comp_channel *ch) {
  errno = 0;
  return code(l->destroy_comp_channel(ch));
}

int gmv_cq_event(const struct gmv_lib *l, struct ibv_comp_channel *ch, struct ibv_cq **cq) {
  void *context;
  errno = 0;
  if (l->get_cq_event(ch, cq, &context)) return failed();
  l->ack_cq_events(*cq, 1);
  return 0;
}

int gmv_create_cq(const struct gmv_lib *l, struct ibv_context *c, int depth, struct ibv_comp_channel *ch,
                  struct ibv_cq **out) {
  errno = 0;
  *out = l->create_cq(c, depth, NULL, ch, 0);
  return *out ? 0 : failed();
}

int gmv_destroy_cq(const struct gmv_lib *l, struct ibv_cq *cq) {
  errno = 0;
  return code(l->destroy_cq(cq));
}

int gmv_req_notify(struct ibv_cq *cq, int solicited_only) {
  errno = 0;
  return code(cq->context->ops.req_notify_cq(cq, solicited_only));
}

int gmv_poll(struct ibv_cq *cq, int n, struct ibv_wc *wcs) {
  errno = 0;
  int r = cq->context->ops.poll_cq(cq, n, wcs);
  return r < 0 ? -code(r) : r;
}

int gmv_create_srq(const struct gmv_lib *l, struct ibv_pd *pd, int depth, struct ibv_srq **out) {
  struct ibv_srq_init_attr a = {.attr = {.max_wr = (uint32_t)depth, .max_sge = 1}};
  errno = 0;
  *out = l->create_srq(pd, &a);
  return *out ? 0 : failed();
}

int gmv_destroy_srq(const struct gmv_lib *l, struct ibv_srq *srq) {
  errno = 0;
  return code(l->destroy_srq(srq));
}

int gmv_create_qp(const struct gmv_lib *l, struct ibv_pd *pd, struct ibv_cq *send_cq, struct ibv_cq *recv_cq,
                  struct ibv_srq *srq, struct ibv_qp_cap *cap, struct ibv_qp **out) {
  struct ibv_qp_init_attr a = {
      .send_cq = send_cq, .recv_cq = recv_cq, .srq = srq, .cap = *cap, .qp_type = IBV_QPT_RC, .sq_sig_all = 0};
  errno = 0;
  *out = l->create_qp(pd, &a);
  if (!*out) return failed();
  *cap = a.cap;
  return 0;
}

int gmv_destroy_qp(const struct gmv_lib *l, struct ibv_qp *qp) {
  errno = 0;
  return code(l->destroy_qp(qp));
}

int gmv_modify_qp(const struct gmv_lib *l, struct ibv_qp *qp, struct ibv_qp_attr *a, int mask) {
  errno = 0;
  return code(l->modify_qp(qp, a, mask));
}

int gmv_query_qp(const struct gmv_lib *l, struct ibv_qp *qp, struct ibv_qp_attr *a) {
  struct ibv_qp_init_attr init;
  memset(&init, 0, sizeof init);
  memset(a, 0, sizeof *a);
  errno = 0;
  return code(l->query_qp(qp, a, IBV_QP_STATE | IBV_QP_CAP | IBV_QP_DEST_QPN | IBV_QP_PATH_MTU, &init));
}

static int64_t result(int posted, int e) { return posted | (int64_t)e << 32; }

int64_t gmv_post_send(struct ibv_qp *qp, const struct gmv_send *s, int n, struct gmv_send_slot *scratch) {
  for (int i = 0; i < n; i++) {
    struct ibv_send_wr *w = &scratch[i].wr;
    w->wr_id = s[i].id;
    w->next = i + 1 < n ? &scratch[i + 1].wr : NULL;
    w->sg_list = &scratch[i].sge;
    w->num_sge = s[i].len ? 1 : 0;
    w->opcode = (int)s[i].opcode;
    w->send_flags = s[i].flags;
    w->imm_data = htonl(s[i].imm);
    scratch[i].sge = (struct ibv_sge){s[i].addr, s[i].len, s[i].lkey};
    if (s[i].opcode == IBV_WR_ATOMIC_CMP_AND_SWP || s[i].opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
      w->wr.atomic.remote_addr = s[i].remote;
      w->wr.atomic.compare_add = s[i].add_or_compare;
      w->wr.atomic.swap = s[i].swap;
      w->wr.atomic.rkey = s[i].rkey;
    } else {
      w->wr.rdma.remote_addr = s[i].remote;
      w->wr.rdma.rkey = s[i].rkey;
    }
  }
  struct ibv_send_wr *bad = NULL;
  errno = 0;
  int e = code(qp->context->ops.post_send(qp, &scratch[0].wr, &bad));
  int posted = e ? 0 : n;
  for (int i = 0; e && bad && i < n; i++)
    if (bad == &scratch[i].wr) posted = i;
  return result(posted, e);
}

static void chain(const struct gmv_recv *r, int n, struct gmv_recv_slot *scratch) {
  for (int i = 0; i < n; i++) {
    scratch[i].sge = (struct ibv_sge){r[i].addr, r[i].len, r[i].lkey};
    scratch[i].wr = (struct ibv_recv_wr){.wr_id = r[i].id,
                                         .next = i + 1 < n ? &scratch[i + 1].wr : NULL,
                                         .sg_list = &scratch[i].sge,
                                         .num_sge = r[i].len ? 1 : 0};
  }
}

static int64_t taken(int e, int n, const struct ibv_recv_wr *bad, const struct gmv_recv_slot *scratch) {
  int posted = e ? 0 : n;
  for (int i = 0; e && bad && i < n; i++)
    if (bad == &scratch[i].wr) posted = i;
  return result(posted, e);
}

int64_t gmv_post_recv(struct ibv_qp *qp, const struct gmv_recv *r, int n, struct gmv_recv_slot *scratch) {
  struct ibv_recv_wr *bad = NULL;
  chain(r, n, scratch);
  errno = 0;
  return taken(code(qp->context->ops.post_recv(qp, &scratch[0].wr, &bad)), n, bad, scratch);
}

int64_t gmv_post_srq(struct ibv_srq *srq, const struct gmv_recv *r, int n, struct gmv_recv_slot *scratch) {
  struct ibv_recv_wr *bad = NULL;
  chain(r, n, scratch);
  errno = 0;
  return taken(code(srq->context->ops.post_srq_recv(srq, &scratch[0].wr, &bad)), n, bad, scratch);
}
