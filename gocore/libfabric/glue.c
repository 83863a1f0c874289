#include "glue.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static struct {
	uint32_t (*version)(void);
	const char *(*strerror)(int);
	int (*getinfo)(uint32_t, const char *, const char *, uint64_t, const struct fi_info *, struct fi_info **);
	void (*freeinfo)(struct fi_info *);
	struct fi_info *(*dupinfo)(const struct fi_info *);
	int (*fabric)(struct fi_fabric_attr *, struct fid_fabric **, void *);
} lib;

#define OFFERS(table, type, call) ((table) && (table)->size > offsetof(type, call) && (table)->call)

// Libraries of providers (PSM) take SIGSEGV and others for themselves when they are
// loaded, the shm provider SIGINT, SIGTERM, SIGSEGV and SIGBUS when libfabric
// initialises. They belong to Python and to Go.
static struct sigaction before[65];

void gm_fi_keep_signals(void)
{
	for (int s = 1; s < 65; s++)
		sigaction(s, NULL, &before[s]);
}

void gm_fi_restore_signals(void)
{
	for (int s = 1; s < 65; s++) {
		struct sigaction now;
		// Only what has changed: others may set handlers at the same time.
		if (sigaction(s, NULL, &now) == 0 && now.sa_handler != before[s].sa_handler)
			sigaction(s, &before[s], NULL);
	}
}

const char *gm_fi_load(const char *path)
{
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		return dlerror();
	// Never closed: providers have threads, and handlers for the end of the process.
	*(void **)&lib.version = dlsym(handle, "fi_version");
	*(void **)&lib.strerror = dlsym(handle, "fi_strerror");
	*(void **)&lib.getinfo = dlsym(handle, "fi_getinfo");
	*(void **)&lib.freeinfo = dlsym(handle, "fi_freeinfo");
	*(void **)&lib.dupinfo = dlsym(handle, "fi_dupinfo");
	*(void **)&lib.fabric = dlsym(handle, "fi_fabric");
	if (!lib.version || !lib.strerror || !lib.getinfo || !lib.freeinfo || !lib.dupinfo || !lib.fabric)
		return "it lacks functions of libfabric";
	return NULL;
}

int gm_fi_init(uint32_t version)
{
	struct fi_info *info = NULL;
	int rc = lib.getinfo(version, NULL, NULL, 0, NULL, &info);
	if (info)
		lib.freeinfo(info);
	return rc;
}

int gm_fi_setenv(const char *name, const char *value) { return setenv(name, value, 0); }

uint32_t gm_fi_version(void) { return lib.version(); }
const char *gm_fi_strerror(int err) { return lib.strerror(err); }

int gm_fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, struct fi_info *hints,
		  struct fi_info **info)
{
	return lib.getinfo(version, node, service, flags, hints, info);
}

void gm_fi_freeinfo(struct fi_info *info) { lib.freeinfo(info); }
struct fi_info *gm_fi_dupinfo(struct fi_info *info) { return lib.dupinfo(info); }

int gm_fi_close(void *fid) { return ((struct fid *)fid)->ops->close(fid); }

int gm_fi_bind(void *fid, void *other, uint64_t flags)
{
	struct fid *f = fid;
	return OFFERS(f->ops, struct fi_ops, bind) ? f->ops->bind(f, other, flags) : -ENOSYS;
}

int gm_fi_enable(void *fid)
{
	struct fid *f = fid;
	return OFFERS(f->ops, struct fi_ops, control) ? f->ops->control(f, FI_ENABLE, NULL) : -ENOSYS;
}

int gm_fi_fabric(struct fi_info *info, struct fid_fabric **fabric)
{
	return lib.fabric(info->fabric_attr, fabric, NULL);
}

int gm_fi_trywait(struct fid_fabric *fabric, struct fid_cq *cq)
{
	struct fid *fids[1] = {&cq->fid};
	return OFFERS(fabric->ops, struct fi_ops_fabric, trywait) ? fabric->ops->trywait(fabric, fids, 1) : -ENOSYS;
}

int gm_fi_domain(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain)
{
	return fabric->ops->domain(fabric, info, domain, NULL);
}

int gm_fi_av_open(struct fid_domain *domain, int type, size_t count, struct fid_av **av)
{
	union {
		struct fi_av_attr attr;
		char room[GM_FI_ROOM];
	} u;
	memset(&u, 0, sizeof u);
	u.attr.type = type;
	u.attr.count = count;
	return domain->ops->av_open(domain, &u.attr, av, NULL);
}

int gm_fi_av_insert(struct fid_av *av, const void *addr, fi_addr_t *peer)
{
	fi_addr_t got = FI_ADDR_UNSPEC;
	int n = av->ops->insert(av, addr, 1, &got, 0, NULL);
	if (n < 0)
		return n;
	*peer = got;
	return n == 1 && got != FI_ADDR_UNSPEC ? 0 : -EADDRNOTAVAIL;
}

int gm_fi_av_remove(struct fid_av *av, fi_addr_t peer) { return av->ops->remove(av, &peer, 1, 0); }

int gm_fi_av_straddr(struct fid_av *av, const void *addr, char *buf, size_t len)
{
	memset(buf, 0, len);
	if (!OFFERS(av->ops, struct fi_ops_av, straddr))
		return -ENOSYS;
	av->ops->straddr(av, addr, buf, &len);
	return 0;
}

int gm_fi_cq_open(struct fid_domain *domain, size_t size, int wait, struct fid_cq **cq)
{
	union {
		struct fi_cq_attr attr;
		char room[GM_FI_ROOM];
	} u;
	memset(&u, 0, sizeof u);
	u.attr.size = size;
	u.attr.format = FI_CQ_FORMAT_DATA;
	u.attr.wait_obj = wait ? FI_WAIT_FD : FI_WAIT_NONE;
	return domain->ops->cq_open(domain, &u.attr, cq, NULL);
}

int gm_fi_cq_fd(struct fid_cq *cq, int *fd)
{
	return OFFERS(cq->fid.ops, struct fi_ops, control) ? cq->fid.ops->control(&cq->fid, FI_GETWAIT, fd) : -ENOSYS;
}

ssize_t gm_fi_cq_read(struct fid_cq *cq, struct fi_cq_data_entry *entries, size_t count, struct gm_fi_failure *failure)
{
	ssize_t n = cq->ops->read(cq, entries, count);
	if (n != -FI_EAVAIL)
		return n;
	union {
		struct fi_cq_err_entry e;
		char room[GM_FI_ROOM];
	} u;
	memset(&u, 0, sizeof u); // err_data_size 0: the provider points err_data at its own
	n = cq->ops->readerr(cq, &u.e, 0);
	if (n < 0)
		return n;
	failure->context = (uint64_t)(uintptr_t)u.e.op_context;
	failure->flags = u.e.flags;
	failure->len = u.e.len;
	failure->data = u.e.data;
	failure->err = u.e.err < 0 ? -u.e.err : u.e.err;
	failure->prov_errno = u.e.prov_errno;
	failure->text[0] = 0;
	if (OFFERS(cq->ops, struct fi_ops_cq, strerror)) {
		// Some providers fill the buffer, some return a text of theirs.
		const char *text = cq->ops->strerror(cq, u.e.prov_errno, u.e.err_data, failure->text, sizeof failure->text);
		if (text && text != failure->text)
			strncpy(failure->text, text, sizeof failure->text - 1);
		failure->text[sizeof failure->text - 1] = 0;
	}
	return 0;
}

int gm_fi_endpoint(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep)
{
	return domain->ops->endpoint(domain, info, ep, NULL);
}

int gm_fi_getname(struct fid_ep *ep, void *addr, size_t *len)
{
	return OFFERS(ep->cm, struct fi_ops_cm, getname) ? ep->cm->getname(&ep->fid, addr, len) : -ENOSYS;
}

int gm_fi_has_atomics(struct fid_ep *ep)
{
	size_t fetch = 0, swap = 0;
	return OFFERS(ep->atomic, struct fi_ops_atomic, readwritevalid) &&
	       OFFERS(ep->atomic, struct fi_ops_atomic, compwritevalid) &&
	       OFFERS(ep->atomic, struct fi_ops_atomic, readwritemsg) &&
	       OFFERS(ep->atomic, struct fi_ops_atomic, compwritemsg) &&
	       ep->atomic->readwritevalid(ep, FI_UINT64, FI_SUM, &fetch) == 0 && fetch >= 1 &&
	       ep->atomic->compwritevalid(ep, FI_UINT64, FI_CSWAP, &swap) == 0 && swap >= 1;
}

int gm_fi_mr_reg(struct fid_domain *domain, uint64_t addr, size_t len, uint64_t access, uint64_t key, struct fid_mr **mr)
{
	return domain->mr->reg(&domain->fid, (void *)(uintptr_t)addr, len, access, 0, key, 0, mr, NULL);
}

static ssize_t message(struct fid_ep *ep, const struct gm_fi_request *r)
{
	struct iovec v = {(void *)(uintptr_t)r->local, r->len};
	void *desc = (void *)(uintptr_t)r->desc;
	struct fi_msg m = {&v, &desc, 1, r->addr, (void *)(uintptr_t)r->context, r->data};
	if (!OFFERS(ep->msg, struct fi_ops_msg, sendmsg))
		return -ENOSYS;
	return r->op == GM_FI_SEND ? ep->msg->sendmsg(ep, &m, r->flags) : ep->msg->recvmsg(ep, &m, r->flags);
}

static ssize_t rma(struct fid_ep *ep, const struct gm_fi_request *r)
{
	struct iovec v = {(void *)(uintptr_t)r->local, r->len};
	void *desc = (void *)(uintptr_t)r->desc;
	struct fi_rma_iov remote = {r->remote, r->len, r->key};
	struct fi_msg_rma m = {&v, &desc, 1, r->addr, &remote, 1, (void *)(uintptr_t)r->context, r->data};
	if (!OFFERS(ep->rma, struct fi_ops_rma, writemsg))
		return -ENOSYS;
	return r->op == GM_FI_WRITE ? ep->rma->writemsg(ep, &m, r->flags) : ep->rma->readmsg(ep, &m, r->flags);
}

static ssize_t atomic(struct fid_ep *ep, const struct gm_fi_request *r)
{
	struct fi_ioc operand = {(void *)(uintptr_t)r->operand, 1}, result = {(void *)(uintptr_t)r->local, 1},
		      compare = {(void *)(uintptr_t)r->compare, 1};
	void *operand_desc = (void *)(uintptr_t)r->operand_desc, *compare_desc = operand_desc;
	void *desc = (void *)(uintptr_t)r->desc;
	struct fi_rma_ioc remote = {r->remote, 1, r->key};
	int op = r->op == GM_FI_FETCH_ADD ? FI_SUM : FI_CSWAP;
	struct fi_msg_atomic m = {&operand, &operand_desc, 1,  r->addr, &remote,
				  1,	    FI_UINT64,	   op, (void *)(uintptr_t)r->context, 0};
	if (!OFFERS(ep->atomic, struct fi_ops_atomic, compwritemsg))
		return -ENOSYS;
	if (r->op == GM_FI_FETCH_ADD)
		return ep->atomic->readwritemsg(ep, &m, &result, &desc, 1, r->flags);
	return ep->atomic->compwritemsg(ep, &m, &compare, &compare_desc, 1, &result, &desc, 1, r->flags);
}

int gm_fi_post(struct fid_ep *ep, const struct gm_fi_request *requests, int count, int *why)
{
	*why = 0;
	for (int i = 0; i < count; i++) {
		const struct gm_fi_request *r = &requests[i];
		ssize_t rc;
		switch (r->op) {
		case GM_FI_SEND:
		case GM_FI_RECV:
			rc = message(ep, r);
			break;
		case GM_FI_WRITE:
		case GM_FI_READ:
			rc = rma(ep, r);
			break;
		default:
			rc = atomic(ep, r);
		}
		if (rc != 0) {
			*why = rc < 0 ? (int)-rc : EIO;
			return i;
		}
	}
	return count;
}
