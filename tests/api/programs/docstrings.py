"""Run the examples of docstrings."""

import doctest
import importlib
import inspect
import os
import re
import tempfile

import numpy as np

from gormapy import MPI


def documented(module):
    """Yield the name and the docstring of each public class, function, call and attribute of a module."""
    for name in getattr(module, "__all__", dir(module)):
        obj = getattr(module, name)
        if name.startswith("_") or not (inspect.isclass(obj) or inspect.isroutine(obj)):
            continue
        if not obj.__module__.startswith("gormapy") or (obj.__module__ == MPI.__name__ and module is not MPI):
            continue
        yield name, obj.__doc__
        for base in obj.__mro__ if inspect.isclass(obj) else ():
            of_mpi = base.__module__.startswith(("gormapy.MPI", "gormapy._fast"))
            if not base.__module__.startswith("gormapy") or (of_mpi and module is not MPI):
                continue
            for member, live in vars(base).items():
                call = getattr(live, "__func__", live)
                if not member.startswith("_") and (inspect.isroutine(call) or isinstance(call, property)):
                    yield f"{name}.{member}", call.__doc__


def examples_give_what_they_show(names):
    parser, runner, seen = doctest.DocTestParser(), doctest.DocTestRunner(verbose=False), set()
    for module in map(importlib.import_module, names):
        for name, doc in documented(module):
            if not doc or ">>> " not in doc:
                continue
            example = inspect.cleandoc(doc[doc.index(">>> ") - 4 :])
            if example not in seen:
                seen.add(example)
                space = {"MPI": MPI, "np": np, **vars(module)}
                runner.run(parser.get_doctest(example, space, name, None, None), clear_globs=False)
    assert not runner.summarize(verbose=False).failed
    print(len(seen))


def docstrings_have_the_form(names):
    """Print each docstring that has not, and how many there are."""
    number = 0
    for module in map(importlib.import_module, names):
        for name, doc in documented(module):
            number += 1
            first, *rest = inspect.cleandoc(doc or "").splitlines() or [""]
            if not re.match(r"[A-Z`].*\.$", first) or rest[:1] not in ([], [""]):
                print(f"{module.__name__}.{name} begins with no sentence: {first!r}")
            if re.search(r"^(-{4,}|Parameters|Returns|Raises|Attributes)$", "\n".join(rest), re.MULTILINE):
                print(f"{module.__name__}.{name} has sections")
    print(number)


def wrong_calls():
    """Yield (name of a call, call that fails) for errors that one rank can make."""
    self_, one, two = MPI.COMM_SELF, np.ones(1), np.ones(2)
    win = MPI.Win.Allocate(8, 8, comm=self_)
    dynamic = MPI.Win.Create_dynamic(comm=self_)
    no_locks = MPI.Win.Allocate(8, comm=self_, info=MPI.Info.Create({"no_locks": "true"}))
    yield "Win.Create", lambda: MPI.Win.Create(one, comm=MPI.COMM_NULL)
    yield "Win.Create", lambda: MPI.Win.Create(one, 0, comm=self_)
    yield "Win.Create", lambda: MPI.Win.Create("x", comm=self_)
    yield "Win.Allocate", lambda: MPI.Win.Allocate(-1, comm=self_)
    yield "Win.Allocate", lambda: MPI.Win.Allocate(1 << 60, comm=self_)
    yield "Win.Allocate_shared", lambda: MPI.Win.Allocate_shared(8, -1, comm=self_)
    yield "Win.Create_dynamic", lambda: MPI.Win.Create_dynamic(MPI.Info.Create({"no_locks": "x"}), self_)
    yield "Win.Attach", lambda: win.Attach(one)
    yield "Win.Attach", lambda: dynamic.Attach("x")
    yield "Win.Detach", lambda: dynamic.Detach(one)
    yield "Win.Shared_query", lambda: dynamic.Shared_query(0)
    yield "Win.Shared_query", lambda: win.Shared_query(1)
    yield "Win.Free", MPI.WIN_NULL.Free
    yield "Win.Set_info", lambda: win.Set_info(MPI.Info.Create({"no_locks": "x"}))
    yield "Win.tomemory", MPI.WIN_NULL.tomemory
    for call in (win.Put, win.Get, win.Accumulate, win.Rput, win.Rget, win.Raccumulate):
        name = f"Win.{call.__name__}"
        yield name, lambda call=call: call(one, 0)
        yield name, lambda call=call: call(one, 1)
        yield name, lambda call=call: getattr(MPI.WIN_NULL, call.__name__)(one, 0)
        yield name, lambda call=call: locked(win, lambda: call(one, 0, 1))
        yield name, lambda call=call: locked(win, lambda: call(one, 0, -1))
        yield name, lambda call=call: locked(win, lambda: call(one, 0, [0, 2, MPI.DOUBLE]))
        yield name, lambda call=call: locked(win, lambda: call(np.ones(4)[::2], 0))
    yield "Win.Accumulate", lambda: locked(win, lambda: win.Accumulate(one, 0, op=MPI.NO_OP))
    yield "Win.Accumulate", lambda: locked(win, lambda: win.Accumulate(one, 0, op=MPI.BAND))
    yield "Win.Fetch_and_op", lambda: locked(win, lambda: win.Fetch_and_op(two, one, 0))
    yield "Win.Compare_and_swap", lambda: locked(win, lambda: win.Compare_and_swap(one, one.copy(), one.copy(), 0))
    yield "Win.Fence", lambda: locked(win, win.Fence)
    yield "Win.Fence", lambda: win.Fence(1)
    yield "Win.Start", lambda: locked(win, lambda: win.Start(win.group))
    yield "Win.Post", lambda: win.Post(win.group, 1)
    for call in (win.Complete, win.Wait, win.Test, win.Unlock_all, win.Flush_all, win.Flush_local_all):
        yield f"Win.{call.__name__}", call
    for call in (win.Unlock, win.Flush, win.Flush_local):
        yield f"Win.{call.__name__}", lambda call=call: call(0)
        yield f"Win.{call.__name__}", lambda call=call: call(1)
    yield "Win.Lock", lambda: win.Lock(0, 5)
    yield "Win.Lock", lambda: win.Lock(1)
    yield "Win.Lock", lambda: win.Lock(0, MPI.LOCK_SHARED, 1)
    yield "Win.Lock", lambda: no_locks.Lock(0)
    yield "Win.Lock", lambda: locked(win, lambda: win.Lock(0))
    yield "Win.Lock_all", no_locks.Lock_all
    yield "Win.Sync", MPI.WIN_NULL.Sync
    for call in (self_.Send, self_.Bsend, self_.Ssend, self_.Rsend, self_.Isend, self_.Send_init):
        name = f"Comm.{call.__name__}"
        yield name, lambda call=call: call(one, 1)
        yield name, lambda call=call: call(one, 0, -5)
        yield name, lambda call=call: call("x", 0)
        yield name, lambda call=call: call([one, 1, MPI.DATATYPE_NULL], 0)
        yield name, lambda call=call: getattr(MPI.COMM_NULL, call.__name__)(one, 0)
    yield "Comm.Recv", lambda: (self_.Isend(two, 0, 9), self_.Recv(one, 0, 9))
    yield "Comm.Recv", lambda: self_.Recv(b"12345678", 0)
    yield "Comm.Precv_init", lambda: self_.Precv_init(two, 2)
    yield "Comm.Psend_init", lambda: self_.Psend_init(two, -1, 0)
    yield "Comm.Psend_init", lambda: self_.Psend_init(np.ones(3), 2, 0)
    yield "Comm.send", lambda: self_.send(lambda: 0, 0)
    yield "Comm.Iprobe", lambda: self_.Iprobe(5)
    for call in (self_.Bcast, self_.Ibcast, self_.Bcast_init):
        yield f"Comm.{call.__name__}", lambda call=call: call(one, 1)
    yield "Comm.bcast", lambda: self_.bcast(1, 1)
    yield "Comm.Allreduce", lambda: self_.Allreduce(one, one.copy(), MPI.OP_NULL)
    yield "Comm.Allreduce", lambda: self_.Allreduce(one, one.copy(), MPI.BAND)
    yield "Comm.Allreduce", lambda: self_.Allreduce(one, two)
    yield "Comm.Gather", lambda: self_.Gather(two, one)
    yield "Comm.Barrier", MPI.COMM_NULL.Barrier
    yield "Comm.scatter", lambda: self_.scatter([1, 2])
    yield "Intracomm.Scan", lambda: self_.Scan(one, one.copy(), MPI.OP_NULL)
    yield "Comm.Split", lambda: self_.Split(-5)
    yield "Comm.Split_type", lambda: self_.Split_type(77)
    yield "Comm.Dup", MPI.COMM_NULL.Dup
    yield "Comm.Create", lambda: self_.Create(MPI.GROUP_NULL)
    yield "Comm.Free", MPI.COMM_WORLD.Free
    yield "Comm.Get_topology", MPI.COMM_NULL.Get_topology
    yield "Comm.Set_attr", lambda: self_.Set_attr(MPI.TAG_UB, 1)
    yield "Comm.Get_attr", lambda: self_.Get_attr(MPI.KEYVAL_INVALID)
    yield "Comm.Get_attr", lambda: MPI.COMM_NULL.Get_attr(MPI.TAG_UB)
    yield "Comm.Set_name", lambda: self_.Set_name("x" * 128)
    yield "Comm.Set_name", lambda: MPI.WIN_NULL.Set_name("x")
    yield "Comm.Set_errhandler", lambda: self_.Set_errhandler(MPI.ERRHANDLER_NULL)
    yield "Comm.Get_errhandler", MPI.SESSION_NULL.Get_errhandler
    yield "Intracomm.Create_group", lambda: self_.Create_group(MPI.GROUP_NULL)
    yield "Intracomm.Create_intercomm", lambda: self_.Create_intercomm(3, self_, 0)
    yield "Intracomm.Create_cart", lambda: self_.Create_cart([2])
    yield "Intracomm.Create_cart", lambda: self_.Create_cart([-1])
    yield "Intracomm.Create_graph", lambda: self_.Create_graph([1, 2], [1, 0])
    yield "Intracomm.Create_dist_graph_adjacent", lambda: self_.Create_dist_graph_adjacent([1], [])
    yield "Intracomm.Spawn", lambda: self_.Spawn("/no such program")
    yield "Intracomm.Spawn", lambda: self_.Spawn("true", maxprocs=0)
    yield "Intracomm.Connect", lambda: self_.Connect("nowhere")
    yield "Intracomm.Accept", lambda: self_.Accept("nowhere")
    yield "Comm.Join", lambda: self_.Join(-1)
    grid = self_.Create_cart([1])
    yield "Cartcomm.Get_cart_rank", lambda: grid.Get_cart_rank([1])
    yield "Cartcomm.Get_coords", lambda: grid.Get_coords(1)
    yield "Cartcomm.Shift", lambda: grid.Shift(1, 1)
    yield "Cartcomm.Sub", lambda: grid.Sub([True, True])
    yield "Cartcomm.Get_dim", MPI.Cartcomm().Get_dim
    yield "Graphcomm.Get_dims", MPI.Graphcomm().Get_dims
    yield "Distgraphcomm.Get_dist_neighbors", MPI.Distgraphcomm().Get_dist_neighbors
    yield "Topocomm.Neighbor_allgather", lambda: MPI.Topocomm().Neighbor_allgather(one, two)
    yield "Comm.Get_size", MPI.COMM_NULL.Get_size
    yield "Comm.Compare", lambda: MPI.COMM_NULL.Compare(self_)
    yield "Comm.Revoke", MPI.COMM_NULL.Revoke
    yield "Comm.Set_attr", lambda: self_.Set_attr(MPI.Win.Create_keyval(), 1)
    yield "Comm.Free_keyval", lambda: self_.Free_keyval(MPI.Win.Create_keyval())
    yield "Comm.Set_errhandler", lambda: self_.Set_errhandler(MPI.Win.Create_errhandler(print))
    yield "Intracomm.Spawn", lambda: self_.Spawn("true", root=5)
    yield "Intracomm.Accept", lambda: self_.Accept("nowhere", root=5)
    group = self_.Get_group()
    yield "Group.Incl", lambda: group.Incl([1])
    yield "Group.Excl", lambda: group.Excl([0, 0])
    yield "Group.Range_incl", lambda: group.Range_incl([(0, 0, 0)])
    yield "Group.Translate_ranks", lambda: group.Translate_ranks([3])
    yield "Group.Get_size", MPI.GROUP_NULL.Get_size
    yield "Request.Cancel", MPI.REQUEST_NULL.Cancel
    yield "Request.Free", MPI.REQUEST_NULL.Free
    yield "Request.Waitall", lambda: MPI.Request.Waitall([1])
    yield "Prequest.Start", lambda: MPI.Prequest().Start()
    yield "Prequest.Start", lambda: (active := self_.Recv_init(one, 0, 77), active.Start(), active.Start())
    yield "Prequest.Pready", lambda: self_.Psend_init(two, 2, 0).Pready(0)
    yield "Prequest.Parrived", lambda: self_.Psend_init(two, 2, 0).Parrived(0)
    yield "Grequest.Complete", lambda: MPI.Grequest().Complete()
    yield "Message.Recv", lambda: MPI.MESSAGE_NULL.Recv(one)
    yield "Datatype.Create_vector", lambda: MPI.DATATYPE_NULL.Create_vector(1, 1, 1)
    yield "Datatype.Create_vector", lambda: MPI.INT.Create_vector(-1, 1, 1)
    yield "Datatype.Create_indexed", lambda: MPI.INT.Create_indexed([1], [1, 2])
    yield "Datatype.Create_subarray", lambda: MPI.INT.Create_subarray([4], [4], [1])
    yield "Datatype.Create_subarray", lambda: MPI.INT.Create_subarray([4], [4], [0], 9)
    yield "Datatype.Create_darray", lambda: MPI.INT.Create_darray(2, 5, [4], [MPI.DISTRIBUTE_BLOCK], [-804], [2])
    yield "Datatype.Create_f90_integer", lambda: MPI.Datatype.Create_f90_integer(99)
    yield "Datatype.Match_size", lambda: MPI.Datatype.Match_size(MPI.TYPECLASS_REAL, 3)
    yield "Datatype.Commit", MPI.DATATYPE_NULL.Commit
    yield "Datatype.Free", lambda: MPI.Datatype(MPI.INT).Free()
    yield "Datatype.Get_contents", MPI.INT.Get_contents
    yield "Datatype.Pack", lambda: MPI.DOUBLE.Pack(two, bytearray(8), 0, self_)
    yield "Datatype.Pack_size", lambda: MPI.DOUBLE.Pack_size(-1, self_)
    yield "Datatype.Pack_external", lambda: MPI.DOUBLE.Pack_external("native", two, bytearray(16), 0)
    yield "Datatype.Pack_external", lambda: MPI.DOUBLE.Pack_external("external32", two, bytearray(8), 0)
    yield "Datatype.fromcode", lambda: MPI.Datatype.fromcode("nothing")
    yield "Datatype.tocode", MPI.DOUBLE_INT.tocode
    yield "Op.Free", lambda: MPI.Op(MPI.SUM).Free()
    yield "Op.Create", lambda: MPI.Op.Create(5)
    yield "Op.Reduce_local", lambda: MPI.BAND.Reduce_local(one, one.copy())
    yield "Op.Reduce_local", lambda: MPI.SUM.Reduce_local(one, two)
    yield "Op.__call__", lambda: MPI.OP_NULL(1, 2)
    yield "Errhandler.Free", lambda: MPI.Errhandler().Free()
    yield "Info.Set", lambda: MPI.INFO_NULL.Set("a", "b")
    info = MPI.Info.Create()
    yield "Info.Set", lambda: info.Set("", "b")
    yield "Info.Set", lambda: info.Set("a", "b" * 2000)
    yield "Info.Set", lambda: info.Set("a", 1)
    yield "Info.Delete", lambda: info.Delete("a")
    yield "Info.Get_nthkey", lambda: info.Get_nthkey(0)
    yield "Info.pop", lambda: info.pop("a")
    session = MPI.Session.Init()
    yield "Session.Get_nth_pset", lambda: session.Get_nth_pset(9)
    yield "Session.Create_group", lambda: session.Create_group("none")
    yield "Session.Get_info", MPI.SESSION_NULL.Get_info
    yield "File.Open", lambda: MPI.File.Open(self_, "/no/such/file")
    yield "File.Open", lambda: MPI.File.Open(self_, "/dev/null", 0)
    yield "File.Open", lambda: MPI.File.Open(MPI.COMM_NULL, "/dev/null")
    yield "File.Delete", lambda: MPI.File.Delete("/no/such/file")
    yield "File.Read", lambda: MPI.FILE_NULL.Read(one)
    with tempfile.TemporaryDirectory() as folder:
        mode = MPI.MODE_CREATE | MPI.MODE_WRONLY
        file = MPI.File.Open(self_, os.path.join(folder, "file"), mode)
        yield "File.Open", lambda: MPI.File.Open(self_, os.path.join(folder, "file"), mode | MPI.MODE_EXCL)
        yield "File.Set_size", lambda: file.Set_size(-1)
        yield "File.Read_at", lambda: file.Read_at(0, one)
        yield "File.Write_at", lambda: file.Write_at(-1, one)
        yield "File.Read_all_end", lambda: file.Read_all_end(one)
        yield "File.Seek", lambda: file.Seek(-1)
        yield "File.Set_view", lambda: file.Set_view(-1)
        yield "File.Set_view", lambda: file.Set_view(0, MPI.DOUBLE, MPI.INT)
        yield "File.Set_view", lambda: file.Set_view(datarep="strange")
        yield "File.Get_byte_offset", lambda: file.Get_byte_offset(-1)
        yield "File.Set_info", lambda: file.Set_info(MPI.Info.Create({"cb_nodes": "x"}))
        file.Close()
        file = MPI.File.Open(self_, os.path.join(folder, "file"))
        yield "File.Write", lambda: file.Write(one)
        file.Close()
    yield "Register_datarep", lambda: MPI.Register_datarep("native", None, None, lambda t: t.extent)
    yield "Register_datarep", lambda: MPI.Register_datarep("own", print, None, lambda t: t.extent)
    yield "Register_datarep", lambda: MPI.Register_datarep("", None, None, lambda t: t.extent)
    yield "Compute_dims", lambda: MPI.Compute_dims(3, [2])
    yield "Alloc_mem", lambda: MPI.Alloc_mem(-1)
    yield "Alloc_mem", lambda: MPI.Alloc_mem(1 << 60)
    yield "Free_mem", lambda: MPI.Free_mem(one)
    yield "Attach_buffer", lambda: (MPI.Attach_buffer(bytearray(9)), MPI.Attach_buffer(bytearray(9)))
    yield "Close_port", lambda: MPI.Close_port("nowhere")
    yield "Lookup_name", lambda: MPI.Lookup_name("nothing")
    yield "Unpublish_name", lambda: MPI.Unpublish_name("nothing", "port")
    yield "Publish_name", lambda: MPI.Publish_name("a\0b", "port")
    yield "Publish_name", lambda: [MPI.Publish_name(f"docstrings of {os.getpid()}", "port") for _ in range(2)]
    yield "Add_error_string", lambda: MPI.Add_error_string(MPI.ERR_RANK, "x")
    yield "Remove_error_class", lambda: MPI.Remove_error_class(MPI.ERR_RANK)
    yield "Get_error_class", lambda: MPI.Get_error_class(-1)
    yield "Get_address", lambda: MPI.Get_address("x")
    yield "Pcontrol", lambda: MPI.Pcontrol("x")
    yield "buffer.allocate", lambda: MPI.buffer.allocate(-1)
    yield "buffer.fromaddress", lambda: MPI.buffer.fromaddress(0, 8)


def locked(win, call):
    win.Lock(0)
    try:
        call()
    finally:
        win.Unlock(0)


def errors_are_raised():
    """Print the name of each call, and the class of the error that it has raised."""
    classes = {value: name for name, value in vars(MPI).items() if name.startswith("ERR_")}
    for name, call in wrong_calls():
        try:
            call()
        except MPI.Exception as error:
            print(name, classes[error.Get_error_class()])
        except Exception as error:
            print(name, type(error).__name__)
        else:
            print(name, "nothing")
