// The calls of libfabric that Go makes, each a C function: those through tables
// can't be called from Go, and a batch is to cost one crossing.
#ifndef GORMAPY_LIBFABRIC_GLUE_H
#define GORMAPY_LIBFABRIC_GLUE_H

#include "abi.h"

// Room for what later versions append to a structure that the library reads or
// fills and that we make.
enum { GM_FI_ROOM = 256 };

enum { GM_FI_SEND, GM_FI_RECV, GM_FI_WRITE, GM_FI_READ, GM_FI_FETCH_ADD, GM_FI_COMPARE_SWAP };

// One request to post. Pointers are integers, since the array may be Go's.
struct gm_fi_request {
	uint32_t op;
	uint32_t unused;
	uint64_t flags;
	uint64_t local;   // data; of an atomic, where the old value goes
	uint64_t len;
	uint64_t desc;    // of local
	uint64_t addr;    // the peer in the address vector
	uint64_t remote;
	uint64_t key;
	uint64_t data;    // with FI_REMOTE_CQ_DATA
	uint64_t operand; // of an atomic: address of 8 bytes
	uint64_t compare; // of a compare-and-swap: address of 8 bytes
	uint64_t operand_desc;
	uint64_t context;
};

struct gm_fi_failure {
	uint64_t context;
	uint64_t flags;
	uint64_t len;
	uint64_t data;
	int err;
	int prov_errno;
	char text[160];
};

const char *gm_fi_load(const char *path); // NULL, or why not
int gm_fi_init(uint32_t version);         // the first fi_getinfo
void gm_fi_keep_signals(void);            // before loading
void gm_fi_restore_signals(void);         // after the first fi_getinfo
int gm_fi_setenv(const char *name, const char *value);
uint32_t gm_fi_version(void);
const char *gm_fi_strerror(int err);
int gm_fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, struct fi_info *hints,
		  struct fi_info **info);
void gm_fi_freeinfo(struct fi_info *info);
struct fi_info *gm_fi_dupinfo(struct fi_info *info);

int gm_fi_close(void *fid);
int gm_fi_bind(void *fid, void *other, uint64_t flags);
int gm_fi_enable(void *fid);
int gm_fi_fabric(struct fi_info *info, struct fid_fabric **fabric);
int gm_fi_trywait(struct fid_fabric *fabric, struct fid_cq *cq);
int gm_fi_domain(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain);
int gm_fi_av_open(struct fid_domain *domain, int type, size_t count, struct fid_av **av);
int gm_fi_av_insert(struct fid_av *av, const void *addr, fi_addr_t *peer);
int gm_fi_av_remove(struct fid_av *av, fi_addr_t peer);
int gm_fi_av_straddr(struct fid_av *av, const void *addr, char *buf, size_t len);
int gm_fi_cq_open(struct fid_domain *domain, size_t size, int wait, struct fid_cq **cq);
int gm_fi_cq_fd(struct fid_cq *cq, int *fd);
// Reads completions. 0 and failure filled in: there is a failed operation.
ssize_t gm_fi_cq_read(struct fid_cq *cq, struct fi_cq_data_entry *entries, size_t count, struct gm_fi_failure *failure);
int gm_fi_endpoint(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep);
int gm_fi_getname(struct fid_ep *ep, void *addr, size_t *len);
int gm_fi_has_atomics(struct fid_ep *ep);
int gm_fi_mr_reg(struct fid_domain *domain, uint64_t addr, size_t len, uint64_t access, uint64_t key, struct fid_mr **mr);
// Posts requests in order until one fails, and says how many went and why no more.
int gm_fi_post(struct fid_ep *ep, const struct gm_fi_request *requests, int count, int *why);

#endif
