package rdmaapi

import (
	"errors"
	"sync"

	"gormapy/gocore/rdmaapi/backend"
)

// node is an object that a handle names.
type node struct {
	handle   int64 // 0 once it is closed
	was      int64 // the handle before it was closed
	kind     string
	object   any
	parents  []*node
	children map[*node]struct{}
	close    func() error
}

// graph has all objects of the process. A handle is index | generation<<32.
var graph struct {
	mu    sync.RWMutex
	nodes []slot
	free  []int32
}

type slot struct {
	node *node
	gen  int64
}

// add makes a handle of an object whose parents must be open.
func add(kind string, object any, close func() error, operation string, parents ...*node) (*node, *Error) {
	n := &node{kind: kind, object: object, close: close, parents: parents, children: map[*node]struct{}{}}
	graph.mu.Lock()
	defer graph.mu.Unlock()
	for _, p := range parents {
		if p.handle == 0 {
			return nil, refuse("EBADF", operation, nil, "the %s was closed meanwhile", p.kind)
		}
	}
	for _, p := range parents {
		p.children[n] = struct{}{}
	}
	if len(graph.nodes) == 0 {
		graph.nodes = make([]slot, 1) // 0 is not a handle
	}
	i := int32(len(graph.nodes))
	if f := len(graph.free); f > 0 {
		i = graph.free[f-1]
		graph.free = graph.free[:f-1]
	} else {
		graph.nodes = append(graph.nodes, slot{})
	}
	s := &graph.nodes[i]
	s.gen = (s.gen + 1) & 0x3fffffff
	s.node = n
	n.handle = int64(i) | s.gen<<32
	return n, nil
}

// lookup returns the node of a handle, nil if there is none (any more).
func lookup(h int64) *node {
	graph.mu.RLock()
	defer graph.mu.RUnlock()
	i := h & 0xffffffff
	if h <= 0 || i >= int64(len(graph.nodes)) || graph.nodes[i].gen != h>>32 {
		return nil
	}
	return graph.nodes[i].node
}

// get returns the object of type T that a handle names, and its node.
func get[T any](h int64, kind, operation string) (T, *node, *Error) {
	var none T
	n := lookup(h)
	if n == nil {
		return none, nil, refuse("EBADF", operation, nil, "this %s is closed, or the object that it was made of is: make a new one", kind)
	}
	t, ok := n.object.(T)
	if !ok {
		return none, nil, refuse("EINVAL", operation, nil, "expecting a %s, got a %s", kind, n.kind)
	}
	return t, n, nil
}

// remove removes a node and all nodes that depend on it from the graph. It returns
// them in the order to close them in: each after the nodes that depend on it. The
// caller holds graph.mu.
func remove(n *node) []*node {
	var all []*node
	for len(n.children) > 0 {
		for c := range n.children {
			all = append(all, remove(c)...)
			break
		}
	}
	for _, p := range n.parents {
		delete(p.children, n)
	}
	i := n.handle & 0xffffffff
	graph.nodes[i].node = nil
	graph.free = append(graph.free, int32(i))
	n.was, n.handle = n.handle, 0
	return append(all, n)
}

// Alive returns 1 if a handle names an object, else 0.
func Alive(h int64) int64 {
	if lookup(h) == nil {
		return 0
	}
	return 1
}

// busy has the handles of closed regions that a peer may still write to.
var busy struct {
	sync.Mutex
	handles map[int64]bool
}

// Close closes the object of a handle and all that depend on it. A second Close
// does nothing and is no error. A negative result is an error; the objects are
// closed nevertheless. EBUSY means that the memory of a region must be kept.
func Close(h int64) (c int64) {
	defer contain("close", &c)
	graph.mu.Lock()
	i := h & 0xffffffff
	var all []*node
	if h > 0 && i < int64(len(graph.nodes)) && graph.nodes[i].gen == h>>32 && graph.nodes[i].node != nil {
		all = remove(graph.nodes[i].node)
	}
	graph.mu.Unlock()
	var first *Error
	for _, n := range all {
		err := n.close()
		if errors.Is(err, backend.ErrBusy) {
			busy.Lock()
			if busy.handles == nil {
				busy.handles = map[int64]bool{}
			}
			busy.handles[n.was] = true
			busy.Unlock()
		}
		if e := from(err, "close "+n.kind, nil); e != nil && first == nil {
			first = e
		}
	}
	if len(all) == 0 {
		busy.Lock()
		defer busy.Unlock()
		if busy.handles[h] { // closed before, for example with its context
			first = from(backend.ErrBusy, "close MemoryRegion", nil)
		}
	}
	return code(first)
}
