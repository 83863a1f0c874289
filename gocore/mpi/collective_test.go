package mpi

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"gormapy/gocore/coll"
	"gormapy/gocore/errs"
	"gormapy/gocore/op"
)

func TestCollectivesOfOneRank(t *testing.T) {
	i, sum := typeOf("INT"), int64(op.Sum)
	for name, c := range map[string]struct {
		kind coll.Kind
		want []int32
	}{
		"bcast":                {coll.KindBcast, []int32{8, 9}}, // the root's buffer stays
		"gather":               {coll.KindGather, []int32{1, 2}},
		"scatter":              {coll.KindScatter, []int32{1, 2}},
		"allgather":            {coll.KindAllgather, []int32{1, 2}},
		"alltoall":             {coll.KindAlltoall, []int32{1, 2}},
		"reduce":               {coll.KindReduce, []int32{1, 2}},
		"allreduce":            {coll.KindAllreduce, []int32{1, 2}},
		"reduce scatter block": {coll.KindReduceScatterBlock, []int32{1, 2}},
		"scan":                 {coll.KindScan, []int32{1, 2}},
		"exscan":               {coll.KindExscan, []int32{8, 9}}, // undefined at rank 0
		"barrier":              {coll.KindBarrier, []int32{8, 9}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, comm := range []int64{CommSelf, CommWorld} {
				_, from := memory[int32](t, 1, 2)
				into, to := memory[int32](t, 8, 9)
				succeeds(t, blocking(func(pending *int64) Code {
					return CollBlocking(int(c.kind), comm, from, 2, i, to, 2, i, sum, 0, pending)
				}))
				assert.Equal(t, c.want, into)

				into[0], into[1] = 8, 9
				req, code := Coll(int(c.kind), comm, from, 2, i, to, 2, i, sum, 0)
				done(t, req, code)
				assert.Equal(t, c.want, into, "nonblocking")
			}
		})
	}
}

func TestCollectiveArgumentsAreChecked(t *testing.T) {
	_, addr := memory[int32](t, 1, 2)
	i, d, sum := typeOf("INT"), typeOf("DOUBLE"), int64(op.Sum)
	type side struct{ addr, count, typ int64 }
	fine := side{addr, 2, i}
	for name, c := range map[string]struct {
		kind  coll.Kind
		comm  int64
		s, r  side
		op    int64
		root  int
		class errs.Class
		text  string
	}{
		"null communicator":    {coll.KindBcast, CommNull, fine, fine, sum, 0, errs.Comm, "COMM_NULL"},
		"root":                 {coll.KindBcast, CommSelf, fine, fine, sum, 1, errs.Root, "the root 1 is not in the communicator: its only rank is 0"},
		"negative root":        {coll.KindReduce, CommSelf, fine, fine, sum, -1, errs.Root, "the root -1"},
		"no such collective":   {coll.KindComm, CommSelf, fine, fine, sum, 0, errs.Intern, "unknown collective"},
		"negative count":       {coll.KindGather, CommSelf, side{addr, -1, i}, fine, sum, 0, errs.Count, "the count -1 is negative"},
		"null buffer":          {coll.KindAllgather, CommSelf, fine, side{0, 2, i}, sum, 0, errs.Buffer, "is the buffer None"},
		"null type":            {coll.KindScatter, CommSelf, side{addr, 2, 0}, fine, sum, 0, errs.Type, "DATATYPE_NULL"},
		"different sizes":      {coll.KindAlltoall, CommSelf, side{addr, 1, i}, fine, sum, 0, errs.Truncate, "has 4 bytes for one rank, the receive buffer 8"},
		"different elements":   {coll.KindGather, CommSelf, side{addr, 1, d}, fine, sum, 0, errs.Type, "the send buffer has elements of"},
		"in place, receive":    {coll.KindAllreduce, CommSelf, fine, side{InPlace, 2, i}, sum, 0, errs.Buffer, "not for the receive buffer"},
		"in place, scatter":    {coll.KindScatter, CommSelf, side{InPlace, 2, i}, fine, sum, 0, errs.Buffer, "not for the send buffer"},
		"null operation":       {coll.KindAllreduce, CommSelf, fine, fine, 0, 0, errs.Op, "OP_NULL"},
		"operation for floats": {coll.KindReduce, CommSelf, side{addr, 1, d}, side{addr, 1, d}, int64(op.Band), 0, errs.Op, "MPI_BAND does not exist"},
		"sides of a reduction": {coll.KindScan, CommSelf, side{addr, 1, i}, fine, sum, 0, errs.Type, "needs the same data at both sides"},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := c.s, c.r
			var pending int64
			fails(t, c.class, c.text, CollBlocking(int(c.kind), c.comm, a.addr, a.count, a.typ, b.addr, b.count, b.typ, c.op, c.root, &pending))
			_, code := Coll(int(c.kind), c.comm, a.addr, a.count, a.typ, b.addr, b.count, b.typ, c.op, c.root)
			fails(t, c.class, c.text, code)
			_, code = CollInit(int(c.kind), c.comm, a.addr, a.count, a.typ, b.addr, b.count, b.typ, c.op, c.root)
			fails(t, c.class, c.text, code)
		})
	}
}

func TestCollectivesWithACountForEachRank(t *testing.T) {
	i := typeOf("INT")
	for name, kind := range map[string]coll.Kind{
		"gatherv": coll.KindGatherv, "scatterv": coll.KindScatterv, "allgatherv": coll.KindAllgatherv, "alltoallv": coll.KindAlltoallv,
	} {
		t.Run(name, func(t *testing.T) {
			_, from := memory[int32](t, 0, 1, 2)
			into, to := memory[int32](t, 9, 9, 9)
			s := &Side{Addr: from, Counts: []int64{2}, Displs: []int64{1}, Type: i}
			r := &Side{Addr: to, Counts: []int64{2}, Type: i}
			req, code := Collv(int(kind), CommSelf, s, r, 0)
			done(t, req, code)
			assert.Equal(t, []int32{1, 2, 9}, into)

			wrong, negative := &Side{Addr: from, Counts: []int64{1, 1}, Type: i}, &Side{Addr: from, Counts: []int64{-1}, Type: i}
			for _, call := range []func(s, r *Side, root int) (int64, Code){
				func(s, r *Side, root int) (int64, Code) { return Collv(int(kind), CommSelf, s, r, root) },
				func(s, r *Side, root int) (int64, Code) { return CollvInit(int(kind), CommSelf, *s, *r, root) },
			} {
				_, code = call(s, r, 1)
				fails(t, errs.Root, "the root 1", code)
				_, code = call(wrong, wrong, 0)
				fails(t, errs.Arg, "count", code)
				_, code = call(negative, negative, 0)
				fails(t, errs.Count, "negative", code)
			}
		})
	}
}
