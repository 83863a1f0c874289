/* What Go calls: each function is one verb, or one verb for a whole batch. They
 * return 0, or an errno (never a negative number, whatever the provider does). */
#ifndef GORMAPY_IBVERBS_CALLS_H
#define GORMAPY_IBVERBS_CALLS_H
#include "abi.h"

/* The library's exported functions. */
#define GMV_SYMBOLS(X)                                                                                    \
  X(struct ibv_device **, get_device_list, (int *))                                                       \
  X(void, free_device_list, (struct ibv_device **))                                                       \
  X(const char *, get_device_name, (struct ibv_device *))                                                 \
  X(struct ibv_context *, open_device, (struct ibv_device *))                                             \
  X(int, close_device, (struct ibv_context *))                                                            \
  X(int, query_device, (struct ibv_context *, struct ibv_device_attr *))                                  \
  X(int, query_port, (struct ibv_context *, uint8_t, struct ibv_port_attr *))                             \
  X(int, query_gid, (struct ibv_context *, uint8_t, int, union ibv_gid *))                                \
  X(int, get_async_event, (struct ibv_context *, struct ibv_async_event *))                               \
  X(void, ack_async_event, (struct ibv_async_event *))                                                    \
  X(struct ibv_pd *, alloc_pd, (struct ibv_context *))                                                    \
  X(int, dealloc_pd, (struct ibv_pd *))                                                                   \
  X(struct ibv_mr *, reg_mr, (struct ibv_pd *, void *, size_t, int))                                      \
  X(int, dereg_mr, (struct ibv_mr *))                                                                     \
  X(struct ibv_comp_channel *, create_comp_channel, (struct ibv_context *))                               \
  X(int, destroy_comp_channel, (struct ibv_comp_channel *))                                               \
  X(struct ibv_cq *, create_cq, (struct ibv_context *, int, void *, struct ibv_comp_channel *, int))      \
  X(int, destroy_cq, (struct ibv_cq *))                                                                   \
  X(int, get_cq_event, (struct ibv_comp_channel *, struct ibv_cq **, void **))                            \
  X(void, ack_cq_events, (struct ibv_cq *, unsigned int))                                                 \
  X(struct ibv_srq *, create_srq, (struct ibv_pd *, struct ibv_srq_init_attr *))                          \
  X(int, destroy_srq, (struct ibv_srq *))                                                                 \
  X(struct ibv_qp *, create_qp, (struct ibv_pd *, struct ibv_qp_init_attr *))                             \
  X(int, modify_qp, (struct ibv_qp *, struct ibv_qp_attr *, int))                                         \
  X(int, query_qp, (struct ibv_qp *, struct ibv_qp_attr *, int, struct ibv_qp_init_attr *))               \
  X(int, destroy_qp, (struct ibv_qp *))

struct gmv_lib {
#define X(ret, name, args) ret(*name) args;
  GMV_SYMBOLS(X)
#undef X
};

/* Finds a symbol, as dlsym does. */
typedef void *(*gmv_find)(void *handle, const char *name);

/* NULL, or the reason in C memory that the caller frees. */
char *gmv_open(const char *file, struct gmv_lib *lib);
char *gmv_load(struct gmv_lib *lib, gmv_find find, void *handle);

/* Work requests as Go has them: no pointers, so that a Go slice of them may be passed. */
struct gmv_send {
  uint64_t id;
  uint32_t opcode, flags;
  uint64_t addr;
  uint32_t len, lkey;
  uint64_t remote;
  uint32_t rkey, imm;
  uint64_t add_or_compare, swap;
};

struct gmv_recv {
  uint64_t id, addr;
  uint32_t len, lkey;
};

/* One element of the scratch memory in which a batch becomes a linked list. */
struct gmv_send_slot {
  struct ibv_send_wr wr;
  struct ibv_sge sge;
};
struct gmv_recv_slot {
  struct ibv_recv_wr wr;
  struct ibv_sge sge;
};

int gmv_devices(const struct gmv_lib *l, struct ibv_device ***list, int *n);
void gmv_free_devices(const struct gmv_lib *l, struct ibv_device **list);
const char *gmv_device_name(const struct gmv_lib *l, struct ibv_device **list, int i);
int gmv_open_device(const struct gmv_lib *l, struct ibv_device **list, int i, struct ibv_context **out);
int gmv_query_device(const struct gmv_lib *l, struct ibv_context *c, struct ibv_device_attr_ex *out);
int gmv_query_port(const struct gmv_lib *l, struct ibv_context *c, int port, struct ibv_port_attr *out);
int gmv_query_gid(const struct gmv_lib *l, struct ibv_context *c, int port, int index, uint8_t *raw);
int gmv_close_device(const struct gmv_lib *l, struct ibv_context *c);
/* EAGAIN when there is none. qp_num is that of the queue pair that the event is about, port likewise. */
int gmv_async_event(const struct gmv_lib *l, struct ibv_context *c, int *type, uint32_t *qp_num, int *port);

int gmv_alloc_pd(const struct gmv_lib *l, struct ibv_context *c, struct ibv_pd **out);
int gmv_dealloc_pd(const struct gmv_lib *l, struct ibv_pd *pd);
int gmv_reg_mr(const struct gmv_lib *l, struct ibv_pd *pd, uint64_t addr, size_t n, int access, struct ibv_mr **out);
int gmv_dereg_mr(const struct gmv_lib *l, struct ibv_mr *mr);

int gmv_create_channel(const struct gmv_lib *l, struct ibv_context *c, struct ibv_comp_channel **out);
int gmv_destroy_channel(const struct gmv_lib *l, struct ibv_comp_channel *ch);
/* EAGAIN when there is none; it has been acknowledged. */
int gmv_cq_event(const struct gmv_lib *l, struct ibv_comp_channel *ch, struct ibv_cq **cq);
int gmv_create_cq(const struct gmv_lib *l, struct ibv_context *c, int depth, struct ibv_comp_channel *ch,
                  struct ibv_cq **out);
int gmv_destroy_cq(const struct gmv_lib *l, struct ibv_cq *cq);
int gmv_req_notify(struct ibv_cq *cq, int solicited_only);
/* How many completions there are in wcs, or minus an errno. */
int gmv_poll(struct ibv_cq *cq, int n, struct ibv_wc *wcs);

int gmv_create_srq(const struct gmv_lib *l, struct ibv_pd *pd, int depth, struct ibv_srq **out);
int gmv_destroy_srq(const struct gmv_lib *l, struct ibv_srq *srq);
int gmv_create_qp(const struct gmv_lib *l, struct ibv_pd *pd, struct ibv_cq *send_cq, struct ibv_cq *recv_cq,
                  struct ibv_srq *srq, struct ibv_qp_cap *cap, struct ibv_qp **out);
int gmv_destroy_qp(const struct gmv_lib *l, struct ibv_qp *qp);
int gmv_modify_qp(const struct gmv_lib *l, struct ibv_qp *qp, struct ibv_qp_attr *a, int mask);
int gmv_query_qp(const struct gmv_lib *l, struct ibv_qp *qp, struct ibv_qp_attr *a);

/* One list, one doorbell. How many requests the device took, and above them, from
 * bit 32, the errno for the next one: Go's results need no memory then. */
int64_t gmv_post_send(struct ibv_qp *qp, const struct gmv_send *s, int n, struct gmv_send_slot *scratch);
int64_t gmv_post_recv(struct ibv_qp *qp, const struct gmv_recv *r, int n, struct gmv_recv_slot *scratch);
int64_t gmv_post_srq(struct ibv_srq *srq, const struct gmv_recv *r, int n, struct gmv_recv_slot *scratch);

#endif
