package dtype

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestConstructorErrors(t *testing.T) {
	i := ByName("INT")
	make2 := func(t *Type, err error) error { return err }
	for name, c := range map[string]struct {
		err   error
		class error
		text  string
	}{
		"null":           {make2(Contiguous(nil, 1)), ErrType, "oldtype is the null datatype"},
		"dup null":       {make2(Dup(nil)), ErrType, "oldtype"},
		"count":          {make2(Contiguous(i, -1)), ErrCount, "count is -1"},
		"blocklength":    {make2(Vector(i, 1, -2, 1)), ErrCount, "blocklength is -2"},
		"blocks":         {make2(Indexed(i, []int{1, -3}, []int{0, 1})), ErrCount, "blocklengths[1] is -3"},
		"lists":          {make2(Hindexed(i, []int{1}, []int{0, 1})), ErrArg, "1 blocklengths and 2 displacements"},
		"struct":         {make2(Struct([]int{1}, []int{0}, nil)), ErrArg, "1 blocklengths and 0 datatypes"},
		"struct null":    {make2(Struct([]int{1}, []int{0}, []*Type{nil})), ErrType, "datatypes[0]"},
		"no dims":        {make2(Subarray(i, nil, nil, nil, true)), ErrArg, "at least one dimension"},
		"size":           {make2(Subarray(i, []int{0}, []int{1}, []int{0}, true)), ErrArg, "sizes[0] is 0"},
		"subsize":        {make2(Subarray(i, []int{4}, []int{5}, []int{0}, true)), ErrArg, "from 1 to sizes[0], which is 4"},
		"start":          {make2(Subarray(i, []int{4}, []int{3}, []int{2}, true)), ErrArg, "which is 1"},
		"large":          {make2(Contiguous(i, math.MaxInt)), ErrArg, "do not fit in 64 bits"},
		"far":            {make2(Vector(i, 2, 1, math.MaxInt)), ErrArg, "do not fit"},
		"bounds":         {make2(Resized(i, math.MaxInt, 1)), ErrArg, "do not fit"},
		"lists of array": {make2(Darray(i, 1, 0, []int{4}, nil, nil, nil, true)), ErrArg, "1 gsizes, 0 distribs"},
		"rank":           {make2(Darray(i, 2, 2, []int{4}, []int{DistributeBlock}, []int{DistributeDefault}, []int{2}, true)), ErrArg, "rank is 2 of size 2"},
		"grid":           {make2(Darray(i, 3, 0, []int{4}, []int{DistributeBlock}, []int{DistributeDefault}, []int{2}, true)), ErrArg, "grid of psizes [2]"},
		"psize":          {make2(Darray(i, 3, 0, []int{4}, []int{DistributeBlock}, []int{DistributeDefault}, []int{0}, true)), ErrArg, "psizes[0] is 0"},
		"gsize":          {make2(Darray(i, 2, 0, []int{0}, []int{DistributeBlock}, []int{DistributeDefault}, []int{2}, true)), ErrArg, "gsizes[0] is 0"},
		"darg":           {make2(Darray(i, 2, 0, []int{4}, []int{DistributeCyclic}, []int{0}, []int{2}, true)), ErrArg, "dargs[0] is 0"},
		"short darg":     {make2(Darray(i, 2, 0, []int{5}, []int{DistributeBlock}, []int{2}, []int{2}, true)), ErrArg, "it must be at least 3"},
		"none":           {make2(Darray(i, 2, 0, []int{5}, []int{DistributeNone}, []int{2}, []int{2}, true)), ErrArg, "DISTRIBUTE_NONE"},
		"distrib":        {make2(Darray(i, 2, 0, []int{5}, []int{7}, []int{2}, []int{2}, true)), ErrArg, "distribs[0] is 7"},
		"null array":     {make2(Darray(nil, 2, 0, []int{5}, []int{7}, []int{2}, []int{2}, true)), ErrType, "oldtype"},
		"array":          {make2(Subarray(i, []int{1 << 40, 1 << 40}, []int{1, 1}, []int{0, 0}, true)), ErrArg, "do not fit"},
	} {
		require.ErrorIs(t, c.err, c.class, name)
		assert.Contains(t, c.err.Error(), c.text, name)
	}
}

func TestStructPadding(t *testing.T) {
	// struct { double d; char c; } has 16 bytes, { char c; int i; } packed to 5 is rounded to 8.
	typ, err := Struct([]int{1, 1}, []int{0, 8}, []*Type{ByName("DOUBLE"), ByName("CHAR")})
	require.NoError(t, err)
	assert.Equal(t, []int{9, 16, 9}, []int{typ.Size(), typ.Extent(), typ.TrueExtent()})
	assert.False(t, typ.Dense())
	typ, err = Struct([]int{1, 1}, []int{0, 1}, []*Type{ByName("CHAR"), ByName("INT")})
	require.NoError(t, err)
	assert.Equal(t, []int{5, 8, 5}, []int{typ.Size(), typ.Extent(), typ.TrueExtent()})
	typ, err = Resized(typ, 0, 5)
	require.NoError(t, err)
	assert.True(t, typ.Dense())
}

func TestEmptyTypes(t *testing.T) {
	typ, err := Contiguous(ByName("INT"), 0)
	require.NoError(t, err)
	assert.Equal(t, []int{0, 0, 0, 0}, []int{typ.Size(), typ.Extent(), typ.LB(), typ.TrueExtent()})
	assert.Equal(t, Int32, typ.Kind(), "nothing of a kind is still of the kind")
	assert.Zero(t, typ.Pack(nil, nil, 5))
	typ.Runs(5, func(int, int) bool { t.Error("no runs"); return true })
	typ, err = Struct(nil, nil, nil)
	require.NoError(t, err)
	assert.Equal(t, KindNone, typ.Kind())
	lo, hi := typ.Span(3)
	assert.Equal(t, []int{0, 0}, []int{lo, hi})
}

func TestDupOfPredefined(t *testing.T) {
	d, err := Dup(ByName("INT"))
	require.NoError(t, err)
	assert.False(t, d.IsPredefined())
	assert.Equal(t, "i", TypeChar(d))
	combiner, ints, addrs, types := d.Envelope()
	assert.Equal(t, "DUP", combiner)
	assert.Empty(t, ints)
	assert.Empty(t, addrs)
	assert.Equal(t, []*Type{ByName("INT")}, types)
}

func TestEnvelope(t *testing.T) {
	i, d := ByName("INT"), ByName("DOUBLE")
	for _, c := range []struct {
		make     func() (*Type, error)
		combiner string
		ints     []int
		addrs    []int
		types    []*Type
	}{
		{func() (*Type, error) { return Contiguous(i, 3) }, "CONTIGUOUS", []int{3}, nil, []*Type{i}},
		{func() (*Type, error) { return Vector(i, 3, 2, 4) }, "VECTOR", []int{3, 2, 4}, nil, []*Type{i}},
		{func() (*Type, error) { return Hvector(i, 3, 2, 40) }, "HVECTOR", []int{3, 2}, []int{40}, []*Type{i}},
		{func() (*Type, error) { return Indexed(i, []int{1, 2}, []int{3, 4}) }, "INDEXED", []int{2, 1, 2, 3, 4}, nil, []*Type{i}},
		{func() (*Type, error) { return Hindexed(i, []int{1, 2}, []int{3, 4}) }, "HINDEXED", []int{2, 1, 2}, []int{3, 4}, []*Type{i}},
		{func() (*Type, error) { return IndexedBlock(i, 2, []int{3, 9}) }, "INDEXED_BLOCK", []int{2, 2, 3, 9}, nil, []*Type{i}},
		{func() (*Type, error) { return HindexedBlock(i, 2, []int{3, 90}) }, "HINDEXED_BLOCK", []int{2, 2}, []int{3, 90}, []*Type{i}},
		{func() (*Type, error) { return Struct([]int{1, 2}, []int{0, 8}, []*Type{i, d}) }, "STRUCT", []int{2, 1, 2}, []int{0, 8}, []*Type{i, d}},
		{func() (*Type, error) { return Subarray(i, []int{4, 5}, []int{2, 3}, []int{1, 2}, true) }, "SUBARRAY", []int{2, 4, 5, 2, 3, 1, 2, OrderC}, nil, []*Type{i}},
		{func() (*Type, error) {
			return Darray(i, 2, 1, []int{5}, []int{DistributeCyclic}, []int{2}, []int{2}, false)
		}, "DARRAY", []int{2, 1, 1, 5, DistributeCyclic, 2, 2, OrderFortran}, nil, []*Type{i}},
		{func() (*Type, error) { return Resized(i, -4, 16) }, "RESIZED", nil, []int{-4, 16}, []*Type{i}},
	} {
		typ, err := c.make()
		require.NoError(t, err)
		combiner, ints, addrs, types := typ.Envelope()
		assert.Equal(t, c.combiner, combiner)
		assert.Equal(t, c.ints, ints)
		assert.Equal(t, c.addrs, addrs)
		assert.Equal(t, c.types, types)
		if len(ints) > 0 {
			ints[0] = -1
			_, again, _, _ := typ.Envelope()
			assert.Equal(t, c.ints, again, "the caller's copy is its own")
		}
	}
}

// FuzzConstructors reads constructors and their arguments from the input. For any of
// them there is a type or an error, and a small type can be used.
func FuzzConstructors(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})
	f.Add([]byte{13, 2, 0xff, 1, 0, 0, 0, 0, 0, 0, 0, 0x80, 3, 4, 5, 1, 1, 1})
	f.Fuzz(func(t *testing.T, in []byte) {
		byteOf := func() int {
			if len(in) == 0 {
				return 0
			}
			b := in[0]
			in = in[1:]
			return int(b)
		}
		number := func() int {
			switch b := byteOf(); {
			case b == 255 && len(in) >= 8:
				v := int(binary.LittleEndian.Uint64(in))
				in = in[8:]
				return v
			case b == 254:
				return math.MaxInt / (1 + byteOf())
			case b == 253:
				return math.MinInt / (1 + byteOf())
			default:
				return b%16 - 4
			}
		}
		list := func() []int {
			l := make([]int, byteOf()%4)
			for i := range l {
				l[i] = number()
			}
			return l
		}
		made := []*Type{ByID(1 + byteOf()%len(predefined))}
		pick := func() *Type { return made[byteOf()%len(made)] }
		for len(in) > 0 && len(made) < 40 {
			var typ *Type
			var err error
			switch byteOf() % 13 {
			case 0:
				typ, err = Dup(pick())
			case 1:
				typ, err = Contiguous(pick(), number())
			case 2:
				typ, err = Vector(pick(), number(), number(), number())
			case 3:
				typ, err = Hvector(pick(), number(), number(), number())
			case 4:
				typ, err = Indexed(pick(), list(), list())
			case 5:
				typ, err = Hindexed(pick(), list(), list())
			case 6:
				typ, err = IndexedBlock(pick(), number(), list())
			case 7:
				typ, err = HindexedBlock(pick(), number(), list())
			case 8:
				typ, err = Struct([]int{number(), number()}, []int{number(), number()}, []*Type{pick(), pick()})
			case 9:
				typ, err = Subarray(pick(), list(), list(), list(), byteOf()%2 == 0)
			case 10:
				typ, err = Resized(pick(), number(), number())
			case 11:
				typ, err = Darray(pick(), number(), number(), list(), []int{121 + byteOf()%4, 121 + byteOf()%4}[:byteOf()%3], list(), list(), byteOf()%2 == 0)
			case 12:
				typ, err = ByID(1+byteOf()%len(predefined)), nil
			}
			if err != nil {
				continue
			}
			made = append(made, typ)
			if typ.Size() < 0 || typ.TrueUB() < typ.TrueLB() {
				t.Fatalf("%s: size %d, data from %d to %d", describe(typ), typ.Size(), typ.TrueLB(), typ.TrueUB())
			}
			lo, hi := typ.Span(2)
			if hi-lo > 1<<16 || hi-lo < 0 || lo < -1<<20 || hi > 1<<20 || typ.Size() > 1<<16 {
				continue
			}
			mem := newMemory(lo, hi)
			buf := make([]byte, 2*typ.Size())
			typ.Pack(buf, mem.at(0), 2)
			typ.Unpack(mem.at(0), buf, 2)
			typ.PackAt(buf, mem.at(0), 2, typ.Size()/2)
		}
	})
}
