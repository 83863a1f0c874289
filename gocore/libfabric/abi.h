// The part of libfabric's application binary interface that gormapy uses,
// written from its manual pages (fi_getinfo, fi_endpoint, fi_domain, fi_cq,
// fi_mr, fi_rma, fi_atomic). abi_test.go compares it with the real headers where
// they are installed. Names are the documented ones without their fi_ prefix
// being changed, so that they can be looked up there.
#ifndef GORMAPY_LIBFABRIC_ABI_H
#define GORMAPY_LIBFABRIC_ABI_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

// Capabilities and operation flags.
#define FI_MSG (1ULL << 1)
#define FI_RMA (1ULL << 2)
#define FI_ATOMIC (1ULL << 4)
#define FI_READ (1ULL << 8)
#define FI_WRITE (1ULL << 9)
#define FI_RECV (1ULL << 10)
#define FI_SEND (1ULL << 11)
#define FI_REMOTE_READ (1ULL << 12)
#define FI_REMOTE_WRITE (1ULL << 13)
#define FI_MULTI_RECV (1ULL << 16)
#define FI_REMOTE_CQ_DATA (1ULL << 17)
#define FI_MORE (1ULL << 18)
#define FI_FENCE (1ULL << 21)
#define FI_COMPLETION (1ULL << 24)
#define FI_INJECT (1ULL << 25)
#define FI_TRANSMIT_COMPLETE (1ULL << 27)
#define FI_DELIVERY_COMPLETE (1ULL << 28)
#define FI_LOCAL_COMM (1ULL << 51)
#define FI_REMOTE_COMM (1ULL << 52)
#define FI_SOURCE (1ULL << 57)

// Mode bits: what a provider may ask of the application.
#define FI_CONTEXT (1ULL << 59)
#define FI_CONTEXT2 (1ULL << 52)

// Memory registration modes.
#define FI_MR_LOCAL (1 << 2)
#define FI_MR_VIRT_ADDR (1 << 4)
#define FI_MR_ALLOCATED (1 << 5)
#define FI_MR_PROV_KEY (1 << 6)
#define FI_MR_ENDPOINT (1 << 9)

// Message orders.
#define FI_ORDER_WAW (1ULL << 4)
#define FI_ORDER_SAW (1ULL << 7)
#define FI_ORDER_SAS (1ULL << 8)

enum { FI_EP_RDM = 3 };
enum { FI_AV_UNSPEC = 0, FI_AV_MAP = 1, FI_AV_TABLE = 2 };
enum { FI_PROGRESS_UNSPEC = 0, FI_PROGRESS_AUTO = 1, FI_PROGRESS_MANUAL = 2 };
enum { FI_THREAD_SAFE = 1 };
enum { FI_RM_ENABLED = 2 };
enum { FI_WAIT_NONE = 0, FI_WAIT_FD = 3 };
enum { FI_CQ_FORMAT_DATA = 3 };
enum { FI_GETWAIT = 5, FI_ENABLE = 6 };
enum { FI_UINT64 = 7 };
enum { FI_SUM = 2, FI_CSWAP = 12 };
enum { FI_EAVAIL = 259 };

#define FI_ADDR_UNSPEC ((uint64_t)-1)
typedef uint64_t fi_addr_t;

struct fid;
struct fid_fabric;
struct fid_domain;
struct fid_av;
struct fid_cq;
struct fid_ep;
struct fid_mr;

struct fi_tx_attr {
	uint64_t caps;
	uint64_t mode;
	uint64_t op_flags;
	uint64_t msg_order;
	uint64_t comp_order;
	size_t inject_size;
	size_t size;
	size_t iov_limit;
	size_t rma_iov_limit;
	uint32_t tclass;
};

struct fi_rx_attr {
	uint64_t caps;
	uint64_t mode;
	uint64_t op_flags;
	uint64_t msg_order;
	uint64_t comp_order;
	size_t total_buffered_recv;
	size_t size;
	size_t iov_limit;
};

struct fi_ep_attr {
	int type;
	uint32_t protocol;
	uint32_t protocol_version;
	size_t max_msg_size;
	size_t msg_prefix_size;
	size_t max_order_raw_size;
	size_t max_order_war_size;
	size_t max_order_waw_size;
	uint64_t mem_tag_format;
	size_t tx_ctx_cnt;
	size_t rx_ctx_cnt;
	size_t auth_key_size;
	uint8_t *auth_key;
};

struct fi_domain_attr {
	struct fid_domain *domain;
	char *name;
	int threading;
	int control_progress;
	int data_progress;
	int resource_mgmt;
	int av_type;
	int mr_mode;
	size_t mr_key_size;
	size_t cq_data_size;
	size_t cq_cnt;
	size_t ep_cnt;
	size_t tx_ctx_cnt;
	size_t rx_ctx_cnt;
	size_t max_ep_tx_ctx;
	size_t max_ep_rx_ctx;
	size_t max_ep_stx_ctx;
	size_t max_ep_srx_ctx;
	size_t cntr_cnt;
	size_t mr_iov_limit;
	uint64_t caps;
	uint64_t mode;
};

struct fi_fabric_attr {
	struct fid_fabric *fabric;
	char *name;
	char *prov_name;
	uint32_t prov_version;
	uint32_t api_version;
};

struct fi_device_attr {
	char *name;
	char *device_id;
	char *device_version;
	char *vendor_id;
	char *driver;
	char *firmware;
};

struct fi_link_attr {
	char *address;
	size_t mtu;
	size_t speed;
	int state;
	char *network_type;
};

struct fi_ops {
	size_t size;
	int (*close)(struct fid *);
	int (*bind)(struct fid *, struct fid *, uint64_t flags);
	int (*control)(struct fid *, int command, void *arg);
};

struct fid {
	size_t fclass;
	void *context;
	struct fi_ops *ops;
};

struct fid_nic {
	struct fid fid;
	struct fi_device_attr *device_attr;
	void *bus_attr;
	struct fi_link_attr *link_attr;
	void *prov_attr;
};

struct fi_info {
	struct fi_info *next;
	uint64_t caps;
	uint64_t mode;
	uint32_t addr_format;
	size_t src_addrlen;
	size_t dest_addrlen;
	void *src_addr;
	void *dest_addr;
	struct fid *handle;
	struct fi_tx_attr *tx_attr;
	struct fi_rx_attr *rx_attr;
	struct fi_ep_attr *ep_attr;
	struct fi_domain_attr *domain_attr;
	struct fi_fabric_attr *fabric_attr;
	struct fid_nic *nic;
};

struct fi_cq_attr {
	size_t size;
	uint64_t flags;
	int format;
	int wait_obj;
	int signaling_vector;
	int wait_cond;
	void *wait_set;
};

struct fi_av_attr {
	int type;
	int rx_ctx_bits;
	size_t count;
	size_t ep_per_node;
	const char *name;
	void *map_addr;
	uint64_t flags;
};

struct fi_ops_fabric {
	size_t size;
	int (*domain)(struct fid_fabric *, struct fi_info *, struct fid_domain **, void *context);
	void *passive_ep;
	void *eq_open;
	void *wait_open;
	int (*trywait)(struct fid_fabric *, struct fid **, int count);
};

struct fid_fabric {
	struct fid fid;
	struct fi_ops_fabric *ops;
	uint32_t api_version;
};

struct fi_ops_domain {
	size_t size;
	int (*av_open)(struct fid_domain *, struct fi_av_attr *, struct fid_av **, void *context);
	int (*cq_open)(struct fid_domain *, struct fi_cq_attr *, struct fid_cq **, void *context);
	int (*endpoint)(struct fid_domain *, struct fi_info *, struct fid_ep **, void *context);
};

struct fi_ops_mr {
	size_t size;
	int (*reg)(struct fid *, const void *buf, size_t len, uint64_t access, uint64_t offset,
		   uint64_t requested_key, uint64_t flags, struct fid_mr **, void *context);
};

struct fid_domain {
	struct fid fid;
	struct fi_ops_domain *ops;
	struct fi_ops_mr *mr;
};

struct fid_mr {
	struct fid fid;
	void *mem_desc;
	uint64_t key;
};

struct fi_ops_av {
	size_t size;
	int (*insert)(struct fid_av *, const void *addr, size_t count, fi_addr_t *, uint64_t flags, void *context);
	void *insertsvc;
	void *insertsym;
	int (*remove)(struct fid_av *, fi_addr_t *, size_t count, uint64_t flags);
	int (*lookup)(struct fid_av *, fi_addr_t, void *addr, size_t *addrlen);
	const char *(*straddr)(struct fid_av *, const void *addr, char *buf, size_t *len);
};

struct fid_av {
	struct fid fid;
	struct fi_ops_av *ops;
};

struct fi_cq_data_entry {
	void *op_context;
	uint64_t flags;
	size_t len;
	void *buf;
	uint64_t data;
};

struct fi_cq_err_entry {
	void *op_context;
	uint64_t flags;
	size_t len;
	void *buf;
	uint64_t data;
	uint64_t tag;
	size_t olen;
	int err;
	int prov_errno;
	void *err_data;
	size_t err_data_size;
};

struct fi_ops_cq {
	size_t size;
	ssize_t (*read)(struct fid_cq *, void *buf, size_t count);
	ssize_t (*readfrom)(struct fid_cq *, void *buf, size_t count, fi_addr_t *);
	ssize_t (*readerr)(struct fid_cq *, struct fi_cq_err_entry *, uint64_t flags);
	void *sread;
	void *sreadfrom;
	void *signal;
	const char *(*strerror)(struct fid_cq *, int prov_errno, const void *err_data, char *buf, size_t len);
};

struct fid_cq {
	struct fid fid;
	struct fi_ops_cq *ops;
};

struct fi_ops_cm {
	size_t size;
	void *setname;
	int (*getname)(struct fid *, void *addr, size_t *addrlen);
};

struct fi_msg {
	const struct iovec *msg_iov;
	void **desc;
	size_t iov_count;
	fi_addr_t addr;
	void *context;
	uint64_t data;
};

struct fi_ops_msg {
	size_t size;
	void *recv;
	void *recvv;
	ssize_t (*recvmsg)(struct fid_ep *, const struct fi_msg *, uint64_t flags);
	void *send;
	void *sendv;
	ssize_t (*sendmsg)(struct fid_ep *, const struct fi_msg *, uint64_t flags);
};

struct fi_rma_iov {
	uint64_t addr;
	size_t len;
	uint64_t key;
};

struct fi_msg_rma {
	const struct iovec *msg_iov;
	void **desc;
	size_t iov_count;
	fi_addr_t addr;
	const struct fi_rma_iov *rma_iov;
	size_t rma_iov_count;
	void *context;
	uint64_t data;
};

struct fi_ops_rma {
	size_t size;
	void *read;
	void *readv;
	ssize_t (*readmsg)(struct fid_ep *, const struct fi_msg_rma *, uint64_t flags);
	void *write;
	void *writev;
	ssize_t (*writemsg)(struct fid_ep *, const struct fi_msg_rma *, uint64_t flags);
};

struct fi_ioc {
	void *addr;
	size_t count;
};

struct fi_rma_ioc {
	uint64_t addr;
	size_t count;
	uint64_t key;
};

struct fi_msg_atomic {
	const struct fi_ioc *msg_iov;
	void **desc;
	size_t iov_count;
	fi_addr_t addr;
	const struct fi_rma_ioc *rma_iov;
	size_t rma_iov_count;
	int datatype;
	int op;
	void *context;
	uint64_t data;
};

struct fi_ops_atomic {
	size_t size;
	void *write;
	void *writev;
	void *writemsg;
	void *inject;
	void *readwrite;
	void *readwritev;
	ssize_t (*readwritemsg)(struct fid_ep *, const struct fi_msg_atomic *, struct fi_ioc *resultv,
				void **result_desc, size_t result_count, uint64_t flags);
	void *compwrite;
	void *compwritev;
	ssize_t (*compwritemsg)(struct fid_ep *, const struct fi_msg_atomic *, const struct fi_ioc *comparev,
				void **compare_desc, size_t compare_count, struct fi_ioc *resultv,
				void **result_desc, size_t result_count, uint64_t flags);
	void *writevalid;
	int (*readwritevalid)(struct fid_ep *, int datatype, int op, size_t *count);
	int (*compwritevalid)(struct fid_ep *, int datatype, int op, size_t *count);
};

struct fid_ep {
	struct fid fid;
	void *ops;
	struct fi_ops_cm *cm;
	struct fi_ops_msg *msg;
	struct fi_ops_rma *rma;
	void *tagged;
	struct fi_ops_atomic *atomic;
	void *collective;
};

#endif
