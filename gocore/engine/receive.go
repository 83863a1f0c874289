package engine

import (
	"unsafe"

	"gormapy/gocore/fabric"
)

// Handler receives the short messages of one kind. It runs under the poll lock:
// it may send messages, but it must not poll or wait. The payload is valid only
// during the call.
type Handler func(src int, h *fabric.Header, payload []byte)

// Handle sets the handler of kind k, before messages of that kind can arrive.
func (e *Engine) Handle(k fabric.Kind, h Handler) { e.handlers[k] = h }

// Deliver implements fabric.Sink.
func (e *Engine) Deliver(src int, h *fabric.Header, payload []byte) {
	defer e.contain("the handling of a message")
	if h.Flags&FlagUrgent != 0 && src != e.Rank && !e.peers[src].remote {
		e.delivered.Add(1)
	}
	if int(h.Kind) < len(e.handlers) && e.handlers[h.Kind] != nil {
		e.handlers[h.Kind](src, h, payload)
	}
}

// Placer returns the address at which the payload of a long message, of n bytes, is to
// be stored; nil if it is to be passed to the handler. It runs under the poll lock.
type Placer func(src int, h *fabric.Header, n int) unsafe.Pointer

// SetPlacer sets the placer of kind k. The handler of k then finds the payload there.
func (e *Engine) SetPlacer(k fabric.Kind, l Placer) { e.placers[k] = l }

// Place implements fabric.Sink.
func (e *Engine) Place(src int, h *fabric.Header, n int) unsafe.Pointer {
	defer e.contain("the placing of a message")
	if int(h.Kind) < len(e.placers) && e.placers[h.Kind] != nil {
		return e.placers[h.Kind](src, h, n)
	}
	return nil
}

// Redirect discards the rest of a payload that is being written to mem, an address
// that a Placer returned. The caller excludes pollers.
func (e *Engine) Redirect(mem unsafe.Pointer) {
	if r, ok := e.net.(fabric.Redirector); ok {
		r.Redirect(mem)
	}
}

// Divert makes all of a payload that is being written to mem, an address that a Placer returned, go to the handler,
// and reports whether it does. The caller excludes pollers.
func (e *Engine) Divert(mem unsafe.Pointer) bool {
	r, ok := e.net.(fabric.Redirector)
	return ok && r.Divert(mem)
}
