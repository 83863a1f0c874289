package mpiio

import (
	"gormapy/gocore/dtype"
	"gormapy/gocore/errs"
)

// conversion is that of an access to a file in external32: the stream of its view is the
// external32 form of the user's data.
type conversion struct {
	*access
	in *dtype.Assembler
}

// convert makes the conversion of an access, if it needs one. Only then does the number of
// bytes in the file differ from that in memory.
func (a *access) convert() {
	if t := a.buf.Type; a.v.external && !t.Portable() {
		a.conv = &conversion{access: a, in: t.Assemble(a.buf.Addr, a.buf.Count)}
		a.n = int64(t.ExternalTotal(a.buf.Count))
	}
}

// convertible returns an error if there are values to be written that external32 can't hold,
// so that nothing is written then.
func (a *access) convertible() (e *errs.Error) {
	if a.conv == nil || a.kind&Write == 0 {
		return nil
	}
	a.conv.try(func() error { return a.buf.Type.Exceeds(a.buf.Addr, a.buf.Count) })
	e, a.err = a.err, nil
	return e
}

// try runs f, which accesses the user's memory. If it fails, it sets the access's error and
// returns false.
func (c *conversion) try(f func() error) bool {
	var err error
	if !c.touch(func() { err = f() }) {
		return false
	}
	if err != nil && c.err == nil {
		c.err = errs.New(errs.Conversion, "%s of %s: %v", c.kind, c.f.name(), err)
	}
	return err == nil
}

func (c *conversion) load(b []byte, skip int64) bool {
	return c.try(func() error { return c.buf.Type.PackExternal(b, c.buf.Addr, c.buf.Count, int(skip)) })
}

func (c *conversion) store(b []byte, skip int64) bool {
	return c.try(func() error { return c.in.Store(b, int(skip)) })
}

// inMemory returns how many bytes of the user's data have been moved by n bytes of the
// stream.
func (c *conversion) inMemory(n int64) int64 {
	_, packed := c.buf.Type.Whole(c.buf.Count, int(n))
	return int64(packed)
}
