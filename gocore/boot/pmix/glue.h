// The part of libpmix that is used: structures and calls from the documented ABI
// (pmix_common.h and pmix.h of OpenPMIx, the same in versions 3 to 6). abi_test.go compares them with
// the real headers where those are installed.

#include <stddef.h>
#include <stdint.h>

enum { PMIX_MAX_NSLEN = 255, PMIX_MAX_KEYLEN = 511 };
enum { PMIX_SUCCESS = 0, PMIX_ERR_NOMEM = -32, PMIX_ERR_NOT_FOUND = -46, PMIX_ERR_LOST_CONNECTION = -61 };
enum { PMIX_BOOL = 1, PMIX_STRING = 3, PMIX_INT = 6, PMIX_BYTE_OBJECT = 27 };
enum { PMIX_GLOBAL = 3 };
#define PMIX_RANK_WILDCARD 4294967294u

struct gm_pmix_proc {
	char nspace[PMIX_MAX_NSLEN + 1];
	uint32_t rank;
};

struct gm_pmix_bytes {
	char *bytes;
	size_t size;
};

struct gm_pmix_value {
	uint16_t type;
	union {
		uint8_t flag;
		int32_t integer;
		char *string;
		struct gm_pmix_bytes bo;
		uint64_t room[3];
	} data;
};

struct gm_pmix_info {
	char key[PMIX_MAX_KEYLEN + 1];
	uint32_t flags;
	struct gm_pmix_value value;
};

// A value that was got, in memory of its own: data is the caller's to free.
struct gm_pmix_got {
	int type;
	uint8_t word[8];
	void *data;
	size_t size;
};

char *gm_pmix_load(const char *path);
const char *gm_pmix_version(void);
const char *gm_pmix_error(int status);
int gm_pmix_init(struct gm_pmix_proc *me);
int gm_pmix_put(const char *key, void *bytes, size_t size);
int gm_pmix_fence(const struct gm_pmix_proc *me);
int gm_pmix_get(const struct gm_pmix_proc *me, uint32_t rank, const char *key, int seconds, struct gm_pmix_got *got);
int gm_pmix_watch(int fd);
int gm_pmix_abort(int code, const char *text);
int gm_pmix_finalize(void);
