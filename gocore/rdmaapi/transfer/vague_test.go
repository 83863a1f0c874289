package transfer

import (
	"sync"

	"gormapy/gocore/rdmaapi/backend"
)

// vague is a back end whose completion queues don't report which request broke a
// queue pair: the first outstanding request completes as if the peer were gone, or
// is flushed. Providers of libfabric do so if a wrong key ends the connection.
type vague struct {
	backend.Backend
	status backend.Status
}

func (v vague) Open(name string) (backend.Context, error) {
	c, err := v.Backend.Open(name)
	return vagueContext{c, v.status}, err
}

type vagueContext struct {
	backend.Context
	status backend.Status
}

func (v vagueContext) AllocPD() (backend.PD, error) {
	pd, err := v.Context.AllocPD()
	return vaguePD{pd}, err
}

func (v vagueContext) CreateCQ(depth int) (backend.CQ, error) {
	cq, err := v.Context.CreateCQ(depth)
	return &vagueCQ{CQ: cq, status: v.status, next: map[uint64]uint32{}}, err
}

type vaguePD struct{ backend.PD }

func (v vaguePD) CreateQP(init backend.QPInit) (backend.QP, error) {
	init.Send, init.Recv = init.Send.(*vagueCQ).CQ, init.Recv.(*vagueCQ).CQ
	return v.PD.CreateQP(init)
}

type vagueCQ struct {
	backend.CQ
	status backend.Status
	mu     sync.Mutex
	next   map[uint64]uint32 // by lane: the first request that has not completed
}

func (v *vagueCQ) Poll(out []backend.Completion) (int, error) {
	n, err := v.CQ.Poll(out)
	v.mu.Lock()
	defer v.mu.Unlock()
	for i := range out[:n] {
		c := &out[i]
		switch lane := c.Cookie >> 32; {
		case c.Recv:
		case c.Status == backend.Success:
			v.next[lane] = uint32(c.Cookie) + 1
		default:
			*c = backend.Completion{Cookie: lane<<32 | uint64(v.next[lane]), Status: v.status}
		}
	}
	return n, err
}
