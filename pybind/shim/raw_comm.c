/* The raw calls that make or free a communicator. What does not wait, such as CommRank and the groups, is in
   pybind/core, and so is what begins calls that take messages only, for result() to wait for. */
#include "raw.h"
#include "_cgo_export.h"

/* DEFINE_MAKE(comm_dup, …) defines raw_comm_dup. */
DEFINE_MAKE(comm_dup, 1, "", NOTE_COMM(a[0], TRACE_NO_PEER, -1, 0), gm_comm_dup(a[0], &made, &req))
DEFINE_MAKE(comm_split, 3, "communicator color key", NOTE_COMM(a[0], TRACE_NO_PEER, -1, 0),
            gm_comm_split(a[0], a[1], a[2], &made, &req))
DEFINE_MAKE(comm_split_type, 3, "communicator split_type key", NOTE_COMM(a[0], TRACE_NO_PEER, -1, 0),
            gm_comm_split_type(a[0], a[1], a[2], &made, &req))
DEFINE_MAKE(comm_create, 2, "", NOTE_COMM(a[0], TRACE_NO_PEER, -1, 0), gm_comm_create(a[0], a[1], &made, &req))
DEFINE_MAKE(comm_merge, 2, "communicator high", NOTE_COMM(a[0], TRACE_NO_PEER, -1, 0),
            gm_comm_merge(a[0], a[1], &made, &req))
DEFINE_MAKE(comm_free, 1, "", NOTE_COMM(a[0], TRACE_NO_PEER, -1, 0), gm_comm_free(a[0], &made, &req))
DEFINE_MAKE(comm_disconnect, 1, "", NOTE_COMM(a[0], TRACE_NO_PEER, -1, 0), gm_comm_disconnect(a[0], &made, &req))

PyMethodDef raw_comm_methods[] = {F(comm_dup),   F(comm_split), F(comm_split_type), F(comm_create),
                                  F(comm_merge), F(comm_free),  F(comm_disconnect), {0}};
