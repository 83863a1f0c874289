#include "glue.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void (*gm_done)(int, void *);
typedef void (*gm_next)(int, struct gm_pmix_info *, size_t, gm_done, void *, void *);
typedef void (*gm_notified)(size_t, int, const struct gm_pmix_proc *, struct gm_pmix_info *, size_t, struct gm_pmix_info *, size_t, gm_next, void *);
typedef void (*gm_registered)(int, size_t, void *);

static struct {
	int (*init)(struct gm_pmix_proc *, struct gm_pmix_info *, size_t);
	int (*put)(uint8_t, const char *, struct gm_pmix_value *);
	int (*commit)(void);
	int (*fence)(const struct gm_pmix_proc *, size_t, const struct gm_pmix_info *, size_t);
	int (*get)(const struct gm_pmix_proc *, const char *, const struct gm_pmix_info *, size_t, struct gm_pmix_value **);
	int (*abort)(int, const char *, struct gm_pmix_proc *, size_t);
	int (*finalize)(const struct gm_pmix_info *, size_t);
	const char *(*version)(void);
	const char *(*error)(int);
	int (*watch)(int *, size_t, struct gm_pmix_info *, size_t, gm_notified, gm_registered, void *); // may be NULL
	void (*destruct)(struct gm_pmix_value *); // NULL in versions that have it inline only
} lib;

// Threads are made with the mask of their maker: with all signals blocked, none is delivered
// to the library's. Faults stay: they are of the thread that makes them.
static void block(sigset_t *before)
{
	sigset_t all;
	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	sigdelset(&all, SIGFPE);
	sigdelset(&all, SIGILL);
	sigdelset(&all, SIGTRAP);
	sigdelset(&all, SIGABRT);
	pthread_sigmask(SIG_SETMASK, &all, before);
}

// The library may install handlers, of faults for example. They belong to Python and Go.
static struct sigaction handlers[65];

static void keep_handlers(void)
{
	for (int s = 1; s < 65; s++)
		sigaction(s, NULL, &handlers[s]);
}

static void restore_handlers(void)
{
	for (int s = 1; s < 65; s++) {
		struct sigaction now;
		// Only what has changed: others may set handlers at the same time.
		if (sigaction(s, NULL, &now) == 0 && now.sa_handler != handlers[s].sa_handler)
			sigaction(s, &handlers[s], NULL);
	}
}

// gm_pmix_load opens the library, for good. It returns NULL, or why it failed, to be freed.
char *gm_pmix_load(const char *path)
{
	sigset_t before;
	block(&before);
	keep_handlers();
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	restore_handlers();
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!handle) {
		const char *why = dlerror();
		return strdup(why ? why : "dlopen failed");
	}
	*(void **)&lib.init = dlsym(handle, "PMIx_Init");
	*(void **)&lib.put = dlsym(handle, "PMIx_Put");
	*(void **)&lib.commit = dlsym(handle, "PMIx_Commit");
	*(void **)&lib.fence = dlsym(handle, "PMIx_Fence");
	*(void **)&lib.get = dlsym(handle, "PMIx_Get");
	*(void **)&lib.abort = dlsym(handle, "PMIx_Abort");
	*(void **)&lib.finalize = dlsym(handle, "PMIx_Finalize");
	*(void **)&lib.version = dlsym(handle, "PMIx_Get_version");
	*(void **)&lib.error = dlsym(handle, "PMIx_Error_string");
	*(void **)&lib.watch = dlsym(handle, "PMIx_Register_event_handler");
	*(void **)&lib.destruct = dlsym(handle, "PMIx_Value_destruct");
	if (!lib.init || !lib.put || !lib.commit || !lib.fence || !lib.get || !lib.abort || !lib.finalize || !lib.version || !lib.error) {
		dlclose(handle); // nothing of it has run
		return strdup("it lacks functions of PMIx");
	}
	return NULL;
}

const char *gm_pmix_version(void) { return lib.version(); }
const char *gm_pmix_error(int status) { return lib.error(status); }

int gm_pmix_init(struct gm_pmix_proc *me)
{
	sigset_t before;
	block(&before);
	keep_handlers();
	int status = lib.init(me, NULL, 0);
	restore_handlers();
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return status;
}

int gm_pmix_put(const char *key, void *bytes, size_t size)
{
	struct gm_pmix_value v;
	memset(&v, 0, sizeof v);
	v.type = PMIX_BYTE_OBJECT;
	v.data.bo.bytes = bytes;
	v.data.bo.size = size;
	return lib.put(PMIX_GLOBAL, key, &v);
}

static void set_flag(struct gm_pmix_info *info, const char *key)
{
	snprintf(info->key, sizeof info->key, "%s", key);
	info->value.type = PMIX_BOOL;
	info->value.data.flag = 1;
}

// gm_pmix_fence waits for all ranks of the job, and exchanges what they have put.
int gm_pmix_fence(const struct gm_pmix_proc *me)
{
	struct gm_pmix_proc all = *me;
	struct gm_pmix_info info;
	int status = lib.commit();
	if (status != PMIX_SUCCESS)
		return status;
	all.rank = PMIX_RANK_WILDCARD;
	memset(&info, 0, sizeof info);
	set_flag(&info, "pmix.collect");
	return lib.fence(&all, 1, &info, 1);
}

// gm_pmix_get gets a value, for which the server may take some seconds; with 0 it looks only
// at what is in this process already.
int gm_pmix_get(const struct gm_pmix_proc *me, uint32_t rank, const char *key, int seconds, struct gm_pmix_got *got)
{
	struct gm_pmix_proc from = *me;
	struct gm_pmix_info info;
	struct gm_pmix_value *v = NULL;
	from.rank = rank;
	memset(&info, 0, sizeof info);
	memset(got, 0, sizeof *got);
	if (seconds) {
		snprintf(info.key, sizeof info.key, "pmix.timeout");
		info.value.type = PMIX_INT;
		info.value.data.integer = seconds;
	} else {
		set_flag(&info, "pmix.optional");
	}
	int status = lib.get(&from, key, &info, 1, &v);
	if (status != PMIX_SUCCESS || !v)
		return status != PMIX_SUCCESS ? status : PMIX_ERR_NOT_FOUND;
	const void *data = NULL;
	got->type = v->type;
	if (v->type == PMIX_STRING && v->data.string) {
		data = v->data.string;
		got->size = strlen(v->data.string);
	} else if (v->type == PMIX_BYTE_OBJECT) {
		data = v->data.bo.bytes;
		got->size = data ? v->data.bo.size : 0;
	} else {
		memcpy(got->word, &v->data, sizeof got->word);
	}
	if (got->size) {
		got->data = malloc(got->size);
		if (got->data)
			memcpy(got->data, data, got->size);
		else
			status = PMIX_ERR_NOMEM;
	}
	// Without the function, only what is known to be malloc's is freed.
	if (lib.destruct)
		lib.destruct(v);
	else if (v->type == PMIX_STRING)
		free(v->data.string);
	else if (v->type == PMIX_BYTE_OBJECT)
		free(v->data.bo.bytes);
	free(v);
	return status;
}

int gm_pmix_abort(int code, const char *text) { return lib.abort(code, text, NULL, 0); }
int gm_pmix_finalize(void) { return lib.finalize(NULL, 0); }

static int watched = -1;

// The library calls this in a thread of its own.
static void lost(size_t id, int status, const struct gm_pmix_proc *source, struct gm_pmix_info *info, size_t n_info, struct gm_pmix_info *results, size_t n_results, gm_next next, void *data)
{
	(void)id, (void)status, (void)source, (void)info, (void)n_info, (void)results, (void)n_results;
	uint64_t one = 1;
	if (write(watched, &one, sizeof one) < 0) {
		// Nobody can be told.
	}
	if (next)
		next(PMIX_SUCCESS, NULL, 0, NULL, NULL, data);
}

static void registered(int status, size_t id, void *data) { (void)status, (void)id, (void)data; }

// gm_pmix_watch has 1 written to fd, an eventfd that is never closed, when the connection to the
// server is lost.
int gm_pmix_watch(int fd)
{
	static int codes[] = {PMIX_ERR_LOST_CONNECTION, -101}; // the name in version 3: ..._TO_SERVER
	if (!lib.watch)
		return PMIX_ERR_NOT_FOUND;
	watched = fd;
	return lib.watch(codes, 2, NULL, 0, lost, registered, NULL);
}
