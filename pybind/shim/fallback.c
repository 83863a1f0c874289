/* The Python methods that the hot methods stand in for: they are called with the same arguments where these are
   unusual or wrong, and lend their docstrings. A CALL_ number stands for the call, whether the C method answers it or
   its fallback does. */
#include "shim.h"

static PyObject *fallbacks[CALL_COUNT];

const char *const hot_names[CALL_COUNT] = {
    [CALL_PUT] = "Win.Put",
    [CALL_GET] = "Win.Get",
    [CALL_ACCUMULATE] = "Win.Accumulate",
    [CALL_GET_ACCUMULATE] = "Win.Get_accumulate",
    [CALL_RPUT] = "Win.Rput",
    [CALL_RGET] = "Win.Rget",
    [CALL_RACCUMULATE] = "Win.Raccumulate",
    [CALL_RGET_ACCUMULATE] = "Win.Rget_accumulate",
    [CALL_FETCH_AND_OP] = "Win.Fetch_and_op",
    [CALL_COMPARE_AND_SWAP] = "Win.Compare_and_swap",
    [CALL_FLUSH] = "Win.Flush",
    [CALL_FLUSH_LOCAL] = "Win.Flush_local",
    [CALL_FLUSH_ALL] = "Win.Flush_all",
    [CALL_FLUSH_LOCAL_ALL] = "Win.Flush_local_all",
    [CALL_LOCK] = "Win.Lock",
    [CALL_UNLOCK] = "Win.Unlock",
    [CALL_LOCK_ALL] = "Win.Lock_all",
    [CALL_UNLOCK_ALL] = "Win.Unlock_all",
    [CALL_FENCE] = "Win.Fence",
    [CALL_SYNC] = "Win.Sync",
    [CALL_POST] = "Win.Post",
    [CALL_START_ACCESS] = "Win.Start",
    [CALL_COMPLETE] = "Win.Complete",
    [CALL_WAIT_EXPOSED] = "Win.Wait",
    [CALL_SEND] = "Comm.Send",
    [CALL_RECV] = "Comm.Recv",
    [CALL_SSEND] = "Comm.Ssend",
    [CALL_ISSEND] = "Comm.Issend",
    [CALL_SENDRECV] = "Comm.Sendrecv",
    [CALL_SENDRECV_REPLACE] = "Comm.Sendrecv_replace",
    [CALL_ISEND] = "Comm.Isend",
    [CALL_IRECV] = "Comm.Irecv",
    [CALL_BARRIER] = "Comm.Barrier",
    [CALL_IBARRIER] = "Comm.Ibarrier",
    [CALL_IBCAST] = "Comm.Ibcast",
    [CALL_IGATHER] = "Comm.Igather",
    [CALL_ISCATTER] = "Comm.Iscatter",
    [CALL_IALLGATHER] = "Comm.Iallgather",
    [CALL_IALLTOALL] = "Comm.Ialltoall",
    [CALL_IREDUCE] = "Comm.Ireduce",
    [CALL_IALLREDUCE] = "Comm.Iallreduce",
    [CALL_IREDUCE_SCATTER_BLOCK] = "Comm.Ireduce_scatter_block",
    [CALL_WAIT] = "Request.Wait",
    [CALL_WAIT_OBJECT] = "Request.wait",
    [CALL_TEST] = "Request.Test",
    [CALL_START] = "Prequest.Start",
    [CALL_WAITALL] = "Request.Waitall",
    [CALL_WAITALL_OBJECTS] = "Request.waitall",
    [CALL_TESTALL] = "Request.Testall",
    [CALL_WAITANY] = "Request.Waitany",
    [CALL_TESTANY] = "Request.Testany",
    [CALL_WAITSOME] = "Request.Waitsome",
    [CALL_TESTSOME] = "Request.Testsome",
    [CALL_STARTALL] = "Prequest.Startall",
    [CALL_ALLREDUCE] = "Comm.Allreduce",
    [CALL_BCAST] = "Comm.Bcast",
    [CALL_SEND_OBJECT] = "Comm.send",
    [CALL_RECV_OBJECT] = "Comm.recv",
    [CALL_SENDRECV_OBJECT] = "Comm.sendrecv",
    [CALL_MPROBE] = "Comm.Mprobe",
    [CALL_MPROBE_OBJECT] = "Comm.mprobe",
    [CALL_RECV_MESSAGE] = "Message.Recv",
    [CALL_RECV_MESSAGE_OBJECT] = "Message.recv",
    [CALL_ISEND_OBJECT] = "Comm.isend",
    [CALL_IRECV_OBJECT] = "Comm.irecv",
    [CALL_BCAST_OBJECT] = "Comm.bcast",
    [CALL_GATHER_OBJECT] = "Comm.gather",
    [CALL_SCATTER_OBJECT] = "Comm.scatter",
    [CALL_ALLGATHER_OBJECT] = "Comm.allgather",
    [CALL_ALLTOALL_OBJECT] = "Comm.alltoall",
    [CALL_ALLREDUCE_OBJECT] = "Comm.allreduce",
    [CALL_GATHER] = "Comm.Gather",
    [CALL_SCATTER] = "Comm.Scatter",
    [CALL_ALLGATHER] = "Comm.Allgather",
    [CALL_ALLTOALL] = "Comm.Alltoall",
    [CALL_REDUCE] = "Comm.Reduce",
    [CALL_REDUCE_SCATTER_BLOCK] = "Comm.Reduce_scatter_block",
    [CALL_SCAN] = "Intracomm.Scan",
    [CALL_EXSCAN] = "Intracomm.Exscan",
    [CALL_REDUCE_SCATTER] = "Comm.Reduce_scatter",
    [CALL_GATHERV] = "Comm.Gatherv",
    [CALL_SCATTERV] = "Comm.Scatterv",
    [CALL_ALLGATHERV] = "Comm.Allgatherv",
    [CALL_ALLTOALLV] = "Comm.Alltoallv",
    [CALL_COMM_DUP] = "Comm.Dup",
    [CALL_COMM_SPLIT] = "Comm.Split",
    [CALL_COMM_FREE] = "Comm.Free",
    [CALL_COMM_GROUP] = "Comm.Get_group",
    [CALL_COMM_RANK] = "Comm.Get_rank",
    [CALL_COMM_SIZE] = "Comm.Get_size",
    [CALL_SHIFT] = "Cartcomm.Shift",
    [CALL_GROUP_SIZE] = "Group.Get_size",
    [CALL_GROUP_RANK] = "Group.Get_rank",
    [CALL_GROUP_INCL] = "Group.Incl",
    [CALL_TRANSLATE_RANKS] = "Group.Translate_ranks",
    [CALL_GROUP_FREE] = "Group.Free",
    [CALL_GET_SOURCE] = "Status.Get_source",
    [CALL_GET_TAG] = "Status.Get_tag",
    [CALL_GET_ERROR] = "Status.Get_error",
    [CALL_GET_COUNT] = "Status.Get_count",
    [CALL_CREATE_CONTIGUOUS] = "Datatype.Create_contiguous",
    [CALL_CREATE_VECTOR] = "Datatype.Create_vector",
    [CALL_CREATE_HVECTOR] = "Datatype.Create_hvector",
    [CALL_CREATE_RESIZED] = "Datatype.Create_resized",
    [CALL_CREATE_INDEXED] = "Datatype.Create_indexed",
    [CALL_CREATE_HINDEXED] = "Datatype.Create_hindexed",
    [CALL_CREATE_INDEXED_BLOCK] = "Datatype.Create_indexed_block",
    [CALL_CREATE_HINDEXED_BLOCK] = "Datatype.Create_hindexed_block",
    [CALL_CREATE_SUBARRAY] = "Datatype.Create_subarray",
    [CALL_CREATE_STRUCT] = "Datatype.Create_struct",
    [CALL_TYPE_SIZE] = "Datatype.Get_size",
    [CALL_TYPE_EXTENT] = "Datatype.Get_extent",
    [CALL_PACK] = "Datatype.Pack",
    [CALL_UNPACK] = "Datatype.Unpack",
    [CALL_COMMIT] = "Datatype.Commit",
    [CALL_FREE_TYPE] = "Datatype.Free",
    [CALL_READ_AT] = "File.Read_at",
    [CALL_WRITE_AT] = "File.Write_at",
    [CALL_READ] = "File.Read",
    [CALL_WRITE] = "File.Write",
    [CALL_READ_AT_ALL] = "File.Read_at_all",
    [CALL_WRITE_AT_ALL] = "File.Write_at_all",
    [CALL_READ_ALL] = "File.Read_all",
    [CALL_WRITE_ALL] = "File.Write_all",
    [CALL_READ_ORDERED] = "File.Read_ordered",
    [CALL_WRITE_ORDERED] = "File.Write_ordered",
    [CALL_READ_SHARED] = "File.Read_shared",
    [CALL_WRITE_SHARED] = "File.Write_shared",
    [CALL_SEEK] = "File.Seek",
    [CALL_GET_POSITION] = "File.Get_position",
};

/* Has a method of the extension, CLASS.NAME, or a function, MPI.NAME, the docstring that the one in Python of the same name has. */
static int document(const char *call, const char *doc) {
  static const struct {
    const char *owner;
    PyMethodDef *tables[9];
  } owners[] = {{"Win.", {win_methods, win_epoch_methods}},
                {"Comm.",
                 {comm_methods, comm_coll_methods, comm_object_methods, comm_making_methods, comm_message_methods,
                  comm_group_methods, comm_query_methods, comm_collv_methods}},
                {"Datatype.", {datatype_methods, datatype_query_methods, datatype_pack_methods}},
                {"Message.", {message_methods}},
                {"Intracomm.", {intracomm_methods}},
                {"Cartcomm.", {cartcomm_methods}},
                {"Request.", {request_methods, request_list_methods}},
                {"Prequest.", {request_methods, request_list_methods}},
                {"File.", {file_methods}},
                {"Group.", {group_methods}},
                {"MPI.", {function_methods}},
                {"Status.", {status_query_methods}}};
  const char *name = strchr(call, '.') + 1;
  int i = 0;
  while (strncmp(owners[i].owner, call, name - call) != 0) i++;
  for (PyMethodDef *const *t = owners[i].tables; *t; t++) {
    for (PyMethodDef *m = *t; m->ml_name; m++) {
      if (strcmp(m->ml_name, name) != 0) continue;
      size_t signature = strstr(m->ml_doc, SIGNATURE_END) - m->ml_doc + strlen(SIGNATURE_END);
      if (strcmp(m->ml_doc + signature, doc) == 0) return 0;
      char *both = malloc(signature + strlen(doc) + 1); /* for good: somebody may be reading the old one */
      if (!both) {
        PyErr_NoMemory();
        return -1;
      }
      memcpy(both, m->ml_doc, signature);
      strcpy(both + signature, doc);
      m->ml_doc = both;
      return 0;
    }
  }
  return 0;
}

/* set_fallback(name, function, docstring) */
PyObject *set_fallback(PyObject *self, PyObject *args) {
  const char *name, *doc;
  PyObject *f;
  if (!PyArg_ParseTuple(args, "sOs", &name, &f, &doc)) return NULL;
  for (int i = 0; i < CALL_COUNT; i++) {
    if (strcmp(name, hot_names[i]) == 0) {
      if (document(name, doc) < 0) return NULL;
      Py_INCREF(f);
      Py_XSETREF(fallbacks[i], f);
      Py_RETURN_NONE;
    }
  }
  return PyErr_Format(PyExc_KeyError, "%s is no hot method", name);
}

/* document(name, docstring): of a function. */
PyObject *raw_document(PyObject *self, PyObject *args) {
  const char *name, *doc;
  if (!PyArg_ParseTuple(args, "ss", &name, &doc) || document(name, doc) < 0) return NULL;
  Py_RETURN_NONE;
}

PyObject *call_fallback(int which, PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames) {
  if (PyErr_Occurred() || check_process() < 0) return NULL;
  if (!fallbacks[which]) return PyErr_Format(PyExc_RuntimeError, "gormapy.MPI is not imported");
  Py_ssize_t nk = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  PyObject *stack[16];
  if (n + nk + 1 > 16) return PyErr_Format(PyExc_TypeError, "%s: too many arguments", hot_names[which]);
  stack[0] = self;
  for (Py_ssize_t i = 0; i < n + nk; i++) stack[i + 1] = args[i];
  return call_vector(fallbacks[which], stack, n + 1, kwnames);
}
