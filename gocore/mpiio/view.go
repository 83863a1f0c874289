package mpiio

import (
	"math"
	"sort"

	"gormapy/gocore/dtype"
	"gormapy/gocore/errs"
)

// maxRuns bounds the memory of a view, 24 bytes a run.
const maxRuns = 1 << 26

// run is a contiguous piece of one tile: its offset in the tile, its length, and how many
// bytes of the tile's data precede it.
type run struct{ off, n, at int64 }

// View is the set of bytes of a file that a rank sees: from Disp on, one copy of the
// filetype (a tile) after the other. It never changes.
//
// The data of a view is a stream of bytes; an offset of MPI is a position in it in units
// of the etype. Stream and file have the same order, since the displacements of a
// filetype ascend.
type View struct {
	Disp  int64
	Etype int64 // size in bytes
	size  int64 // data bytes of a tile
	ext   int64 // distance of tiles
	runs  []run

	overlaps bool // some bytes occur twice, which only a view for reading may have
	external bool // the file's data is in external32, and so is the stream
}

// Extent returns the extent that a type has in a file with this view.
func (v *View) Extent(t *dtype.Type) (int64, *errs.Error) {
	if v.external {
		var e *errs.Error
		if t, e = inFile("Get_type_extent", t); e != nil {
			return 0, e
		}
	}
	return int64(t.Extent()), nil
}

// inFile returns the type whose displacements are those of t in external32.
func inFile(call string, t *dtype.Type) (*dtype.Type, *errs.Error) {
	f, err := t.InFile()
	if err != nil {
		return nil, errs.New(errs.Type, "%s: %v (in external32)", call, err)
	}
	return f, nil
}

// endless is the size of a tile of a view without gaps.
const endless = math.MaxInt64 / 4

// bytesView returns the view that a file is opened with.
func bytesView() *View { return flatView(0, 1) }

// flatView returns a view of all bytes from disp on.
func flatView(disp, etype int64) *View {
	return &View{Disp: disp, Etype: etype, size: endless, ext: endless, runs: []run{{0, endless, 0}}}
}

// NewView makes a view, or returns an error if the types can't make one. If the view is
// writable, no byte may occur twice.
func NewView(disp int64, etype, filetype *dtype.Type, writable bool) (*View, *errs.Error) {
	switch {
	case disp < 0:
		return nil, errs.New(errs.Arg, "Set_view: the displacement %d is negative", disp)
	case etype.Size() == 0:
		return nil, errs.New(errs.Type, "Set_view: the etype has no data; it is the unit in which offsets count")
	case filetype.Size()%etype.Size() != 0:
		return nil, errs.New(errs.Type, "Set_view: the filetype has %d bytes of data, which is not a multiple of the etype's %d; build it of the etype",
			filetype.Size(), etype.Size())
	}
	v := &View{Disp: disp, Etype: int64(etype.Size()), size: int64(filetype.Size()), ext: int64(filetype.Extent())}
	if v.size == 0 {
		return v, nil
	}
	var e *errs.Error
	end := int64(0) // of the run before
	filetype.Runs(1, func(o, m int) bool {
		off, n := int64(o), int64(m)
		switch last := len(v.runs) - 1; {
		case off < 0:
			e = errs.New(errs.Type, "Set_view: the filetype begins %d bytes before its place; displacements in a filetype are 0 or more", -off)
		case last >= 0 && off < v.runs[last].off:
			e = errs.New(errs.Type, "Set_view: the displacements of the filetype do not ascend (%d comes after %d)", off, v.runs[last].off)
		case writable && off < end:
			e = errs.New(errs.Type, "Set_view: the filetype has the byte at displacement %d twice, which a file that can be written must not", off)
		case len(v.runs) == maxRuns:
			e = errs.New(errs.NoMem, "Set_view: the filetype has more than %d separate pieces", maxRuns)
		default:
			at := int64(0)
			if last >= 0 {
				at = v.runs[last].at + v.runs[last].n
			}
			v.overlaps = v.overlaps || off < end
			v.runs = append(v.runs, run{off, n, at})
			end = max(end, off+n)
		}
		return e == nil
	})
	if e != nil {
		return nil, e
	}
	first := v.runs[0].off
	if end-first > v.ext {
		return nil, errs.New(errs.Type, "Set_view: the filetype's data reaches over %d bytes and its extent is %d, so that its copies would overlap; set the extent by Create_resized",
			end-first, v.ext)
	}
	if len(v.runs) == 1 && v.size == v.ext && !v.overlaps {
		flat := flatView(disp, v.Etype)
		flat.runs[0].off = first
		return flat, nil
	}
	return v, nil
}

// empty reports whether the view shows no bytes.
func (v *View) empty() bool { return v.size == 0 }

// Pos returns the offset in the file of byte at of the stream.
func (v *View) Pos(at int64) int64 {
	if v.empty() {
		return v.Disp
	}
	tile, within := at/v.size, at%v.size
	r := v.runs[v.find(within)]
	return v.Disp + tile*v.ext + r.off + within - r.at
}

// find returns the run of a tile that has byte within of its data.
func (v *View) find(within int64) int {
	return sort.Search(len(v.runs), func(i int) bool { return v.runs[i].at+v.runs[i].n > within })
}

// Before returns how many bytes of the stream lie before pos in the file.
func (v *View) Before(pos int64) int64 {
	pos -= v.Disp
	if v.empty() || pos <= v.runs[0].off {
		return 0
	}
	tile := (pos - v.runs[0].off) / v.ext
	pos -= tile * v.ext
	// The runs of a tile lie less than an extent from its first byte, and so does pos.
	i := sort.Search(len(v.runs), func(i int) bool { return v.runs[i].off >= pos })
	if i == 0 {
		return tile * v.size
	}
	r := v.runs[i-1]
	return tile*v.size + r.at + min(pos-r.off, r.n)
}

// Runs yields the pieces of the file that have n bytes of the stream from at on, in
// ascending order. Adjacent pieces are merged.
func (v *View) Runs(at, n int64, yield func(off, n int64) bool) {
	if n <= 0 || v.empty() {
		return
	}
	tile, within := at/v.size, at%v.size
	off, length := int64(0), int64(0) // the run to be yielded: the next may be adjacent
	for i := v.find(within); n > 0; i++ {
		if i == len(v.runs) {
			i, within = 0, 0
			tile++
		}
		r := v.runs[i]
		skip := max(within-r.at, 0)
		o, m := v.Disp+tile*v.ext+r.off+skip, min(r.n-skip, n)
		n -= m
		if o == off+length && length > 0 {
			length += m
			continue
		}
		if length > 0 && !yield(off, length) {
			return
		}
		off, length = o, m
	}
	if length > 0 {
		yield(off, length)
	}
}

// span returns the part of the file that n bytes from at on span.
func (v *View) span(at, n int64) (lo, hi int64) {
	if n <= 0 || v.empty() {
		return 0, 0
	}
	return v.Pos(at), v.Pos(at+n-1) + 1
}

// pieces returns the approximate number of runs that have n bytes.
func (v *View) pieces(n int64) int64 {
	if n == 0 || v.empty() {
		return 0
	}
	runs := int64(len(v.runs))
	return max(1, n/v.size*runs+n%v.size*runs/v.size)
}
