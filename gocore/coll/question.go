package coll

import (
	"encoding/binary"

	"gormapy/gocore/errs"
	"gormapy/gocore/fabric"
	"gormapy/gocore/p2p"
)

// Questions and answers of ledgers; see ledger for the protocol.

// The flags of a Call message. Tag is the number of the collective, Aux and A are the label
// of the sender's call. Without flagAnswer it is a question. The payload of an answer with
// flagGivenUp is the cause.
const (
	flagAnswer    uint8 = 1
	flagCompleted uint8 = 2
	flagGivenUp   uint8 = 4
	flagUncalled  uint8 = 8
)

// causeBytes is the length of a cause in an answer.
const causeBytes = 16

// ask asks a rank about a collective in progress, if it has not kept the question already.
func (l *ledger) ask(e *entry, rank int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, again := e.kept[rank]; again {
		return
	}
	l.ch.Tell(rank, fabric.Header{Gen: e.generation, Tag: int32(e.number), Aux: e.label.Word, A: e.label.Size}, nil)
}

// answer tells a rank how a collective has ended here.
func (l *ledger) answer(rank int, generation uint32, rec *record) {
	h := fabric.Header{Flags: flagAnswer | flagCompleted, Gen: generation, Tag: int32(rec.number), Aux: rec.label.Word, A: rec.label.Size}
	var payload []byte
	if rec.failed {
		h.Flags = flagAnswer | flagGivenUp
		payload = binary.LittleEndian.AppendUint32(nil, uint32(rec.cause.rank))
		payload = binary.LittleEndian.AppendUint32(payload, rec.cause.label.Word)
		payload = binary.LittleEndian.AppendUint64(payload, rec.cause.label.Size)
	}
	l.ch.Tell(rank, h, payload)
}

// Told implements p2p.Listener.
func (l *ledger) Told(h *fabric.Header, payload []byte) {
	from, k, theirs := int(h.Src), uint32(h.Tag), p2p.Label{Word: h.Aux, Size: h.A}
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.find(k)
	switch question := h.Flags&flagAnswer == 0; {
	case question && e != nil:
		if l.asked(e, from, theirs) {
			l.unfinished(from, h.Gen, k, e.label, 0)
		}
	case question && int32(k-l.last) > 0:
		l.unfinished(from, h.Gen, k, unknown, flagUncalled)
		if l.early[k] == nil {
			l.early[k] = map[int]p2p.Label{}
		}
		l.early[k][from] = theirs
	case question:
		l.answer(from, h.Gen, l.recall(k))
	case e != nil:
		l.answered(e, from, theirs, h.Flags, payload)
	}
}

// asked deals with the question of a rank about a collective in progress. It reports
// whether it keeps the question.
func (l *ledger) asked(e *entry, from int, theirs p2p.Label) (kept bool) {
	if err := e.mismatch(theirs, from, l.sides); err != nil {
		e.fail(err, cause{from, theirs})
		l.unfinished(from, e.generation, e.number, e.label, 0)
		return false
	}
	if v := e.verdict.Load(); v != nil { // it ends when a thread of this process advances it
		l.answer(from, e.generation, &record{number: e.number, label: e.label, failed: true, cause: v.cause})
		return false
	}
	if e.askers == nil {
		e.askers = map[int]p2p.Label{}
	}
	e.askers[from] = theirs
	e.wanted.Store(true)
	return true
}

// unfinished tells a rank that collective k is in progress here or, with flagUncalled, has not been called.
func (l *ledger) unfinished(rank int, generation, k uint32, mine p2p.Label, flags uint8) {
	l.ch.Tell(rank, fabric.Header{Flags: flagAnswer | flags, Gen: generation, Tag: int32(k), Aux: mine.Word, A: mine.Size}, nil)
}

// answered deals with an answer about a collective in progress.
func (l *ledger) answered(e *entry, from int, theirs p2p.Label, flags uint8, payload []byte) {
	if err := e.mismatch(theirs, from, l.sides); err != nil {
		e.fail(err, cause{from, theirs})
		return
	}
	switch {
	case flags&flagGivenUp != 0:
		why := cause{from, gaveUp}
		if len(payload) == causeBytes {
			c := cause{int(binary.LittleEndian.Uint32(payload)), p2p.Label{Word: binary.LittleEndian.Uint32(payload[4:]),
				Size: binary.LittleEndian.Uint64(payload[8:])}}
			if c.rank < len(l.ch.World) && c.rank != l.ch.Rank && e.mismatch(c.label, c.rank, l.sides) != nil {
				why = c
			}
		}
		err := e.mismatch(why.label, why.rank, l.sides)
		if how, gone := l.ch.HowGone(why.rank); gone && why.label == ended {
			err = errs.New(err.Class, "%s: %s", err.Detail, how)
		}
		e.fail(err, why)
	case flags&flagCompleted != 0:
		if e.others == nil {
			e.others = map[int]struct{}{}
		}
		e.others[from] = struct{}{}
	default:
		if e.kept == nil {
			e.kept = map[int]bool{}
		}
		e.kept[from] = flags&flagUncalled != 0
	}
}
