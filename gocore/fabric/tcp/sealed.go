package tcp

import (
	"fmt"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"gormapy/gocore/fabric"
	"gormapy/gocore/seal"
	"gormapy/gocore/sys"
)

// sealedBytes returns the length of a sealed frame with a payload of n bytes.
func sealedBytes(n int) int { return frameBytes(n) + seal.Overhead }

// longest has room for the longest sealed frame.
type longest [headBytes + maxShort + seal.Overhead]byte

// staging has memory in which long frames are sealed.
var staging = sync.Pool{New: func() any { return new(longest) }}

// readable returns how many of a sealed frame's bytes are not encrypted.
func (g Guard) readable(frame []byte) int {
	if g == Encrypted {
		return prefixBytes
	}
	return len(frame) - seal.Overhead
}

// pack makes a sealed frame in buf, under mu. The payload is copied, because its memory may change
// at any time, also between the making of its tag and the sending. If it faults nothing
// has happened.
func (p *pair) pack(buf []byte, h *fabric.Header, payload []byte) []byte {
	frame := buf[:sealedBytes(len(payload))]
	encodeHead(frame, h, len(payload), p.outNumber)
	n := headBytes + copy(frame[headBytes:], payload)
	clear(frame[n:])
	p.sealer.Seal(frame, p.t.id.guard.readable(frame))
	p.count()
	return frame
}

// sendSealed is send, if frames are sealed and the queue is empty. What the socket does not take is
// queued, also of a long frame: its number in the order of frames is taken.
func (p *pair) sendSealed(h *fabric.Header, payload []byte) error {
	total := sealedBytes(len(payload))
	buf := p.out[:]
	if total > len(buf) {
		b := staging.Get().(*longest)
		defer staging.Put(b)
		buf = b[:]
	}
	frame := p.pack(buf, h, payload)
	n, errno := send(p.fd, frame)
	switch errno {
	case 0:
	case unix.EAGAIN, unix.EINTR, unix.ENOBUFS, unix.ENOMEM:
		n = 0
	default:
		p.failed = p.lost("send", errno)
		return p.failed
	}
	if n < total {
		p.queue = append(p.queue, frame[n:]...)
		p.wait()
	}
	return nil
}

// digestSealed opens the frames that are in the buffer, where they are, and delivers them. One for which
// the buffer is too short is read into memory of the transport.
func (p *pair) digestSealed(sink fabric.Sink, delivered int) (int, error) {
	for p.w-p.r >= headBytes {
		size, err := decodePrefix(p.in[p.r:])
		if err != nil {
			return delivered, fmt.Errorf("%w: %w", seal.ErrForged, err)
		}
		if due, err := p.isDue(); err != nil {
			return delivered, fmt.Errorf("%w: %w", seal.ErrForged, err)
		} else if !due {
			return delivered, nil
		}
		total := sealedBytes(size)
		switch {
		case total > len(p.in):
			p.stage(total)
			if p.rest > 0 {
				return delivered, nil
			}
			err = p.openLong(sink)
		case p.w-p.r < total:
			p.long = false // what follows goes to the buffer, too
			p.compact(total)
			return delivered, nil
		default:
			frame := p.in[p.r:][:total:total]
			p.r, p.long = p.r+total, false
			err = p.open(sink, frame)
		}
		if err != nil {
			return delivered, err
		}
		p.arrived()
		delivered++
	}
	p.compact(sealedBytes(placeMin))
	return delivered, nil
}

// stage takes memory for a frame that is longer than the buffer, and copies there the part of it that is in the buffer.
func (p *pair) stage(total int) {
	p.scratch = p.t.takeScratch()
	n := copy(p.scratch[:total], p.in[p.r:p.w])
	p.r, p.long = p.r+n, true
	p.size, p.rest, p.dropped, p.torn = total, total-n, false, false
	if p.rest > 0 {
		p.r, p.w = 0, 0
	}
}

// openLong opens the frame in the memory of the transport, which is complete.
func (p *pair) openLong(sink fabric.Sink) error {
	scratch := p.scratch
	p.scratch = nil
	err := p.open(sink, scratch[:p.size])
	p.t.giveScratch(scratch)
	return err
}

// open opens a frame, and delivers it. Nothing is written to the memory of Place before the
// frame is known to be the peer's.
func (p *pair) open(sink fabric.Sink, frame []byte) error {
	if err := p.opener.Open(frame, p.t.id.guard.readable(frame)); err != nil {
		return err
	}
	size, err := decodeHead(frame, &p.head)
	if err != nil {
		return err
	}
	if p.head.Kind == fabric.KindNone {
		return p.control(size)
	}
	payload := frame[headBytes:][:size:size]
	if size > placeMin {
		if into := sink.Place(p.peer, &p.head, size); into != nil {
			to := unsafe.Slice((*byte)(into), size)
			if sys.Touch(func() { copy(to, payload) }) == nil {
				payload = to
			}
		}
	}
	sink.Deliver(p.peer, &p.head, payload)
	return nil
}
