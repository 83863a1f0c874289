package dtype

import "fmt"

// build collects the blocks of a new type: where its data is, and, if the
// types it is made of have explicit bounds, the bounds that result.
type build struct {
	arith
	call     string
	body     []piece
	elements []piece
	pairs    bool // elements differ from body

	kinds  int // number of different kinds seen, up to 2
	kind   Kind
	elems  int
	align  int
	marked bool
	lb, ub int
}

// block adds blocklen items of old at byte offset off, repeated count times
// stride bytes apart.
func (b *build) block(old *Type, off, count, stride, blocklen int) {
	if count == 0 || blocklen == 0 {
		return
	}
	if old.elems > 0 {
		if b.kinds == 0 {
			b.kind, b.kinds = old.kind, 1
		} else if b.kind != old.kind {
			b.kind, b.kinds = KindNone, 2
		}
	}
	b.align = max(b.align, old.align)
	b.elems = b.add(b.elems, b.mul(b.mul(count, blocklen), old.elems))
	place := func(p piece) piece {
		return p.loop(&b.arith, blocklen, old.Extent()).loop(&b.arith, count, stride).shift(&b.arith, off)
	}
	b.body = append(b.body, place(old.body))
	if b.pairs {
		b.elements = append(b.elements, place(old.elements))
	}
	if !old.marked {
		return
	}
	lb, ub := b.stretch(old.lb, old.ub, blocklen, old.Extent())
	lb, ub = b.stretch(lb, ub, count, stride)
	lb, ub = b.add(lb, off), b.add(ub, off)
	if b.marked {
		lb, ub = min(lb, b.lb), max(ub, b.ub)
	}
	b.marked, b.lb, b.ub = true, lb, ub
}

// stretch returns the bounds of count copies, stride bytes apart.
func (b *build) stretch(lb, ub, count, stride int) (int, int) {
	shift := b.mul(count-1, stride)
	return b.add(lb, min(shift, 0)), b.add(ub, max(shift, 0))
}

// done returns the type. Without explicit bounds they are those of the data, with
// the extent rounded up to the alignment of the elements (the standard's
// epsilon, MPI-4.1 section 5.1).
func (b *build) done(combiner string, ints, addrs []int, types ...*Type) (*Type, error) {
	t := &Type{
		kind: b.kind, elems: b.elems, align: max(b.align, 1), marked: b.marked, lb: b.lb, ub: b.ub,
		portable: new(portable),
		combiner: combiner, ints: ints, addrs: addrs, types: types,
	}
	t.body = concat(&b.arith, b.body)
	t.elements = t.body
	if b.pairs && t.kind.IsPair() {
		t.elements = concat(&b.arith, b.elements)
	}
	// An overflow leaves the layout unfinished: check before using it.
	if b.overflow {
		return nil, tooLarge(b.call)
	}
	for _, p := range []piece{t.body, t.elements} {
		if p.l != nil {
			b.add(p.off, p.l.lo)
			b.add(p.off, p.l.hi)
		}
	}
	t.size = t.body.size()
	if !t.marked {
		t.lb, t.ub = t.TrueLB(), t.TrueUB()
		if over := b.sub(t.ub, t.lb) % t.align; over != 0 {
			t.ub = b.add(t.ub, t.align-over)
		}
	}
	extent := b.sub(t.ub, t.lb)
	if b.overflow {
		return nil, tooLarge(b.call)
	}
	l := t.body.l
	t.dense = l != nil && l.op == opBlock && t.body.off == 0 && t.size == extent
	return t, nil
}

func isPair(types ...*Type) bool {
	for _, t := range types {
		if t.kind.IsPair() {
			return true
		}
	}
	return false
}

func start(call string, types ...*Type) (*build, error) {
	for _, t := range types {
		if t == nil {
			return nil, missing(call, "oldtype")
		}
	}
	b := &build{call: call, pairs: isPair(types...)}
	if len(types) == 1 {
		// An empty type of INT may still be summed.
		b.kind = types[0].kind
	}
	return b, nil
}

// Dup returns a copy of old.
func Dup(old *Type) (*Type, error) {
	if old == nil {
		return nil, missing("Dup", "oldtype")
	}
	t := *old
	t.id, t.name, t.portable = 0, "", new(portable)
	t.combiner, t.ints, t.addrs, t.types = "DUP", nil, nil, []*Type{old}
	return &t, nil
}

// Contiguous returns count items of old, one after the other.
func Contiguous(old *Type, count int) (*Type, error) {
	const call = "Create_contiguous"
	b, err := start(call, old)
	if err != nil {
		return nil, err
	}
	if count < 0 {
		return nil, negative(call, "count", count)
	}
	b.block(old, 0, 1, 0, count)
	return b.done("CONTIGUOUS", []int{count}, nil, old)
}

// Vector returns count blocks of blocklength items of old, the starts of
// consecutive blocks stride extents of old apart.
func Vector(old *Type, count, blocklength, stride int) (*Type, error) {
	const call = "Create_vector"
	b, err := startVector(call, old, count, blocklength)
	if err != nil {
		return nil, err
	}
	b.block(old, 0, count, b.mul(stride, old.Extent()), blocklength)
	return b.done("VECTOR", []int{count, blocklength, stride}, nil, old)
}

// Hvector is Vector with a stride in bytes.
func Hvector(old *Type, count, blocklength, stride int) (*Type, error) {
	const call = "Create_hvector"
	b, err := startVector(call, old, count, blocklength)
	if err != nil {
		return nil, err
	}
	b.block(old, 0, count, stride, blocklength)
	return b.done("HVECTOR", []int{count, blocklength}, []int{stride}, old)
}

func startVector(call string, old *Type, count, blocklength int) (*build, error) {
	b, err := start(call, old)
	switch {
	case err != nil:
		return nil, err
	case count < 0:
		return nil, negative(call, "count", count)
	case blocklength < 0:
		return nil, negative(call, "blocklength", blocklength)
	}
	return b, nil
}

// Indexed returns blocks of blocklengths[i] items of old at displacements[i]
// extents of old.
func Indexed(old *Type, blocklengths, displacements []int) (*Type, error) {
	b, err := startIndexed("Create_indexed", old, blocklengths, displacements)
	if err != nil {
		return nil, err
	}
	for i, n := range blocklengths {
		b.block(old, b.mul(displacements[i], old.Extent()), 1, 0, n)
	}
	return b.done("INDEXED", counted(blocklengths, displacements), nil, old)
}

// Hindexed is Indexed with displacements in bytes.
func Hindexed(old *Type, blocklengths, displacements []int) (*Type, error) {
	b, err := startIndexed("Create_hindexed", old, blocklengths, displacements)
	if err != nil {
		return nil, err
	}
	for i, n := range blocklengths {
		b.block(old, displacements[i], 1, 0, n)
	}
	return b.done("HINDEXED", counted(blocklengths), clone(displacements), old)
}

func startIndexed(call string, old *Type, blocklengths, displacements []int) (*build, error) {
	b, err := start(call, old)
	if err != nil {
		return nil, err
	}
	return b, checkBlocks(call, blocklengths, displacements)
}

func checkBlocks(call string, blocklengths, displacements []int) error {
	if len(blocklengths) != len(displacements) {
		return fmt.Errorf("%w: %s: %d blocklengths and %d displacements; there must be one of each per block",
			ErrArg, call, len(blocklengths), len(displacements))
	}
	for i, n := range blocklengths {
		if n < 0 {
			return negative(call, fmt.Sprintf("blocklengths[%d]", i), n)
		}
	}
	return nil
}

// IndexedBlock is Indexed with blocks of equal length.
func IndexedBlock(old *Type, blocklength int, displacements []int) (*Type, error) {
	const call = "Create_indexed_block"
	b, err := startVector(call, old, len(displacements), blocklength)
	if err != nil {
		return nil, err
	}
	for _, d := range displacements {
		b.block(old, b.mul(d, old.Extent()), 1, 0, blocklength)
	}
	return b.done("INDEXED_BLOCK", append([]int{len(displacements), blocklength}, displacements...), nil, old)
}

// HindexedBlock is IndexedBlock with displacements in bytes.
func HindexedBlock(old *Type, blocklength int, displacements []int) (*Type, error) {
	const call = "Create_hindexed_block"
	b, err := startVector(call, old, len(displacements), blocklength)
	if err != nil {
		return nil, err
	}
	for _, d := range displacements {
		b.block(old, d, 1, 0, blocklength)
	}
	return b.done("HINDEXED_BLOCK", []int{len(displacements), blocklength}, clone(displacements), old)
}

// Struct returns blocks of blocklengths[i] items of types[i] at
// displacements[i] bytes.
func Struct(blocklengths, displacements []int, types []*Type) (*Type, error) {
	const call = "Create_struct"
	if len(types) != len(blocklengths) {
		return nil, fmt.Errorf("%w: %s: %d blocklengths and %d datatypes; there must be one of each per block",
			ErrArg, call, len(blocklengths), len(types))
	}
	if err := checkBlocks(call, blocklengths, displacements); err != nil {
		return nil, err
	}
	for i, t := range types {
		if t == nil {
			return nil, missing(call, fmt.Sprintf("datatypes[%d]", i))
		}
	}
	b := &build{call: call, pairs: isPair(types...)}
	for i, t := range types {
		b.block(t, displacements[i], 1, 0, blocklengths[i])
	}
	return b.done("STRUCT", counted(blocklengths), clone(displacements), append([]*Type(nil), types...)...)
}

// Resized returns old with its lower bound and extent set.
func Resized(old *Type, lb, extent int) (*Type, error) {
	b, err := start("Create_resized", old)
	if err != nil {
		return nil, err
	}
	b.block(old, 0, 1, 0, 1)
	b.marked, b.lb, b.ub = true, lb, b.add(lb, extent)
	return b.done("RESIZED", nil, []int{lb, extent}, old)
}

// Envelope returns how t was made: the constructor ("NAMED" for a predefined
// type, "VECTOR", ...) and its arguments in the order of MPI_Type_get_contents.
func (t *Type) Envelope() (combiner string, ints, addrs []int, types []*Type) {
	return t.combiner, clone(t.ints), clone(t.addrs), append([]*Type(nil), t.types...)
}

// counted returns the number of blocks followed by the lists.
func counted(lists ...[]int) []int {
	all := []int{len(lists[0])}
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

func clone(s []int) []int { return append([]int(nil), s...) }
