// A plain loop of fi_write between two processes: what the transport is compared
// with. Build: cc -O2 -o write_loop write_loop.c -lfabric
//
//   write_loop PROVIDER DOMAIN SIZE WINDOW COUNT ROUNDS
//
// The parent writes to the child, COUNT writes of SIZE bytes a round, WINDOW of
// them under way, and waits for all of them (FI_DELIVERY_COMPLETE). A line with
// the seconds of a round is printed for each line on stdin, so that another program
// can take turns with it.
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define CHECK(call)                                                                                            \
	do {                                                                                                   \
		long rc_ = (call);                                                                             \
		if (rc_ < 0) {                                                                                 \
			fprintf(stderr, "%s: %s\n", #call, fi_strerror((int)-rc_));                            \
			exit(1);                                                                               \
		}                                                                                              \
	} while (0)

struct card {
	char name[256];
	size_t len;
	uint64_t addr, key;
};

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
	if (argc != 7)
		return 2;
	size_t size = strtoul(argv[3], NULL, 0), window = strtoul(argv[4], NULL, 0), count = strtoul(argv[5], NULL, 0);
	int rounds = atoi(argv[6]);
	int up[2], down[2];
	if (pipe(up) || pipe(down))
		return 1;
	pid_t child = fork();
	if (child == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);

	struct fi_info *hints = fi_allocinfo(), *info;
	hints->caps = FI_MSG | FI_RMA;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->threading = FI_THREAD_SAFE;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->domain_attr->name = *argv[2] ? strdup(argv[2]) : NULL;
	hints->fabric_attr->prov_name = strdup(argv[1]);
	hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
	CHECK(fi_getinfo(FI_VERSION(1, 14), NULL, NULL, 0, hints, &info));
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fid_mr *mr;
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_DATA, .size = 1024};
	CHECK(fi_fabric(info->fabric_attr, &fabric, NULL));
	CHECK(fi_domain(fabric, info, &domain, NULL));
	CHECK(fi_av_open(domain, &av_attr, &av, NULL));
	CHECK(fi_cq_open(domain, &cq_attr, &cq, NULL));
	CHECK(fi_endpoint(domain, info, &ep, NULL));
	CHECK(fi_ep_bind(ep, &av->fid, 0));
	CHECK(fi_ep_bind(ep, &cq->fid, FI_SEND | FI_RECV));
	CHECK(fi_enable(ep));
	char *mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(mem, child == 0, size);
	CHECK(fi_mr_reg(domain, mem, size, FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 17, 0, &mr, NULL));
	struct card mine = {.len = sizeof mine.name}, peer;
	CHECK(fi_getname(&ep->fid, mine.name, &mine.len));
	mine.key = fi_mr_key(mr);
	mine.addr = info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uint64_t)(uintptr_t)mem : 0;
	int in = child ? up[0] : down[0], out = child ? down[1] : up[1];
	if (write(out, &mine, sizeof mine) != sizeof mine || read(in, &peer, sizeof peer) != sizeof peer)
		return 1;
	fi_addr_t to;
	CHECK(fi_av_insert(av, peer.name, 1, &to, 0, NULL) - 1);
	struct fi_cq_data_entry done[64];
	if (child == 0)
		for (;;)
			(void)fi_cq_read(cq, done, 64);
	struct fi_context2 *contexts = calloc(window, sizeof *contexts);
	char line[16];
	for (int r = 0; r < rounds && fgets(line, sizeof line, stdin); r++) {
		kill(child, SIGCONT);
		double start = now();
		size_t posted = 0, ended = 0;
		while (ended < count) {
			while (posted < count && posted - ended < window) {
				long rc = fi_write(ep, mem, size, fi_mr_desc(mr), to, peer.addr, peer.key, &contexts[posted % window]);
				if (rc == -FI_EAGAIN)
					break;
				CHECK(rc);
				posted++;
			}
			long n = fi_cq_read(cq, done, 64);
			if (n > 0)
				ended += n;
			else if (n != -FI_EAGAIN)
				CHECK(n);
		}
		double seconds = now() - start;
		kill(child, SIGSTOP); // it polls all the time, which would disturb the other program's turn
		printf("%.9f\n", seconds);
		fflush(stdout);
	}
	kill(child, SIGKILL);
	return 0;
}
