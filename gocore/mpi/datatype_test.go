package mpi

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/dtype"
	"gormapy/gocore/errs"
	"gormapy/gocore/op"
)

// newType frees a type at the end of the test.
func newType(t testing.TB, h int64) int64 {
	t.Helper()
	made(t, h)
	t.Cleanup(func() { TypeFree(h) })
	return h
}

// longList returns the address of a list of 64-bit integers.
func longList(t testing.TB, values ...int64) int64 {
	t.Helper()
	_, addr := memory(t, values...)
	return addr
}

func TestDatatypeTableHasThePredefinedTypes(t *testing.T) {
	rows := strings.Fields(DatatypeTable())
	require.Len(t, rows, len(dtype.Predefined()))
	assert.Contains(t, rows, fmt.Sprintf("MPI_INT=%d:4:4:i", typeOf("INT")))
	assert.Contains(t, rows, fmt.Sprintf("MPI_DOUBLE_INT=%d:12:16:", typeOf("DOUBLE_INT")))
	seen := map[string]bool{}
	for _, row := range rows {
		name, _, ok := strings.Cut(row, "=")
		require.True(t, ok)
		require.False(t, seen[name], "%s is there twice", name)
		seen[name] = true
	}
}

func TestDatatypeConstructors(t *testing.T) {
	i, d := typeOf("INT"), typeOf("DOUBLE")
	blocks, displs := longList(t, 2, 1), longList(t, 3, 0)
	bytes := longList(t, 0, 8)
	for name, c := range map[string]struct {
		h int64
		// size extent lb true_lb true_extent dense
		want string
	}{
		"predefined":         {i, "4 4 0 0 4 true"},
		"pair with padding":  {typeOf("DOUBLE_INT"), "12 16 0 0 12 false"},
		"contiguous":         {TypeContiguous(i, 3), "12 12 0 0 12 true"},
		"contiguous of none": {TypeContiguous(i, 0), "0 0 0 0 0 false"},
		"vector":             {TypeVector(i, 3, 2, 4), "24 40 0 0 40 false"},
		"vector, backwards":  {TypeVector(i, 2, 1, -2), "8 12 -8 -8 12 false"},
		"hvector":            {TypeHvector(i, 2, 1, 10), "8 16 0 0 14 false"},
		"indexed":            {TypeIndexed(i, 2, blocks, displs), "12 20 0 0 20 false"},
		"hindexed":           {TypeHindexed(i, 2, blocks, bytes), "12 12 0 0 12 true"},
		"indexed block":      {TypeIndexedBlock(i, 2, 1, displs), "8 16 0 0 16 false"},
		"hindexed block":     {TypeHindexedBlock(i, 2, 1, bytes), "8 12 0 0 12 false"},
		"struct":             {TypeStruct(2, longList(t, 1, 1), longList(t, 0, 8), longList(t, i, d)), "12 16 0 0 16 false"},
		"subarray":           {TypeSubarray(i, 2, longList(t, 4, 6), longList(t, 2, 3), longList(t, 1, 2), 0), "24 96 0 32 36 false"},
		"darray": {TypeDarray(i, 2, 1, 1, longList(t, 8, 802, distributeDefault, 2), 0),
			"16 32 0 16 16 false"},
		"resized": {TypeResized(i, -4, 16), "4 16 -4 0 4 false"},
		"dup":     {TypeDup(i), "4 4 0 0 4 true"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newType(t, c.h)
			succeeds(t, TypeCommit(h))
			assert.Equal(t, c.want, shapeText(t, h))
		})
	}
}

// shapeText returns size, extent, lower bound, true lower bound, true extent and density of a datatype.
func shapeText(t *testing.T, h int64) string {
	t.Helper()
	var s TypeShape
	succeeds(t, ShapeOfType(h, &s))
	_, e := committedType(h)
	dense := s.OneRun == 1 && e == nil
	return fmt.Sprint(s.Size, s.Extent, s.LB, s.TrueLB, s.TrueExtent, dense)
}

func TestDatatypeConstructorErrors(t *testing.T) {
	i := typeOf("INT")
	freed := made(t, TypeContiguous(i, 2))
	succeeds(t, TypeFree(freed))
	for name, c := range map[string]struct {
		class errs.Class
		text  string
		h     int64
	}{
		"null":                    {errs.Type, "DATATYPE_NULL", TypeContiguous(0, 1)},
		"freed":                   {errs.Type, "has been freed", TypeDup(freed)},
		"negative count":          {errs.Count, "count is -1", TypeContiguous(i, -1)},
		"negative block length":   {errs.Count, "blocklength is -2", TypeVector(i, 1, -2, 1)},
		"negative block in list":  {errs.Count, "blocklengths[1] is -3", TypeIndexed(i, 2, longList(t, 1, -3), longList(t, 0, 1))},
		"too large":               {errs.Count, "do not fit in 64 bits", TypeContiguous(i, math.MaxInt64)},
		"part beyond the array":   {errs.Arg, "which is 1", TypeSubarray(i, 1, longList(t, 4), longList(t, 3), longList(t, 2), 0)},
		"struct of null":          {errs.Type, "DATATYPE_NULL", TypeStruct(1, longList(t, 1), longList(t, 0), longList(t, 0))},
		"unknown distribution":    {errs.Arg, "distribs[0] is 7", TypeDarray(i, 2, 0, 1, longList(t, 8, 7, 1, 2), 0)},
		"value of dtype, not MPI": {errs.Arg, "dargs[0] is -1", TypeDarray(i, 2, 0, 1, longList(t, 8, 803, int64(dtype.DistributeDefault), 2), 0)},
	} {
		t.Run(name, func(t *testing.T) {
			require.Negative(t, c.h)
			fails(t, c.class, c.text, int(-c.h))
		})
	}
}

func TestDatatypeIsFreedOnce(t *testing.T) {
	h := made(t, TypeContiguous(typeOf("INT"), 2))
	built := newType(t, TypeContiguous(h, 3))
	succeeds(t, TypeFree(h))
	fails(t, errs.Type, "has been freed", TypeFree(h))
	fails(t, errs.Type, "has been freed", TypeCommit(h))
	fails(t, errs.Type, "has been freed", ShapeOfType(h, new(TypeShape)))
	assert.Equal(t, "24 24 0 0 24 false", shapeText(t, built), "a type that is built on it remains")
	fails(t, errs.Type, "MPI_INT is predefined and can't be freed", TypeFree(typeOf("INT")))
	fails(t, errs.Type, "DATATYPE_NULL", TypeFree(0))
}

func TestCommunicationTakesCommittedTypesOnly(t *testing.T) {
	h := newType(t, TypeContiguous(typeOf("INT"), 2))
	copied := newType(t, TypeDup(h))
	_, addr := memory[int32](t, 1, 2)
	send := func(typ int64) Code {
		var pending int64
		return SendNow(KindSend, CommSelf, addr, 1, typ, ProcNull, 0, &pending)
	}
	fails(t, errs.Type, "a derived datatype is not committed: call its Commit() once", send(h))
	succeeds(t, TypeCommit(h))
	succeeds(t, send(h))
	fails(t, errs.Type, "is not committed", send(copied))
	succeeds(t, send(newType(t, TypeDup(h))))
}

func TestPackAndUnpackAreInverse(t *testing.T) {
	column := newType(t, TypeVector(typeOf("INT"), 3, 1, 2))
	succeeds(t, TypeCommit(column))
	_, from := memory[int32](t, 1, -1, 2, -1, 3)
	packed, addr := memory(t, make([]int32, 5)...)
	assert.EqualValues(t, 16, made(t, TypePack(column, from, 1, addr, 20, 4)), "the position is after the data")
	assert.Equal(t, []int32{0, 1, 2, 3, 0}, packed)

	unpacked, to := memory[int32](t, 9, 9, 9, 9, 9)
	assert.EqualValues(t, 16, made(t, TypeUnpack(column, addr, 20, 4, to, 1)))
	assert.Equal(t, []int32{1, 9, 2, 9, 3}, unpacked)

	assert.EqualValues(t, 20, made(t, TypePack(column, 0, 0, addr, 20, 20)), "no items need no room")
}

func TestPackErrors(t *testing.T) {
	i := typeOf("INT")
	_, addr := memory[int32](t, 1, 2, 3, 4)
	_, out := memory(t, make([]byte, 16)...)
	for name, c := range map[string]struct {
		class    errs.Class
		text     string
		position int64
	}{
		"pack, no room":            {errs.Arg, "16 bytes from position 4 do not fit an output of 16 bytes", TypePack(i, addr, 4, out, 16, 4)},
		"pack, negative position":  {errs.Arg, "from position -1", TypePack(i, addr, 1, out, 16, -1)},
		"pack, position after end": {errs.Arg, "from position 17", TypePack(i, addr, 0, out, 16, 17)},
		"pack, negative count":     {errs.Count, "the count -2 is negative", TypePack(i, addr, -2, out, 16, 0)},
		"pack, no input":           {errs.Buffer, "is the buffer None", TypePack(i, 0, 1, out, 16, 0)},
		"pack, no output":          {errs.Buffer, "is the buffer None", TypePack(i, addr, 1, 0, 16, 0)},
		"pack, null type":          {errs.Type, "DATATYPE_NULL", TypePack(0, addr, 1, out, 16, 0)},
		"unpack, short input":      {errs.Arg, "8 bytes from position 12 are more than the input of 16 bytes has", TypeUnpack(i, out, 16, 12, addr, 2)},
		"unpack, no input":         {errs.Buffer, "is the buffer None", TypeUnpack(i, 0, 16, 0, addr, 1)},
		"unpack, no output":        {errs.Buffer, "is the buffer None", TypeUnpack(i, out, 16, 0, 0, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			require.Negative(t, c.position)
			fails(t, c.class, c.text, int(-c.position))
		})
	}
}

func TestOperationIsAppliedToMemory(t *testing.T) {
	_, in := memory[int32](t, 1, 2, 3)
	inout, to := memory[int32](t, 10, 20, 30)
	succeeds(t, OpApply(int64(op.Sum), typeOf("INT"), in, to, 3))
	assert.Equal(t, []int32{11, 22, 33}, inout)

	column := newType(t, TypeVector(typeOf("INT"), 2, 1, 2))
	succeeds(t, TypeCommit(column))
	succeeds(t, OpApply(int64(op.Prod), column, in, to, 1))
	assert.Equal(t, []int32{11, 22, 99}, inout, "what lies between the items stays")
}

func TestOperationErrors(t *testing.T) {
	_, addr := memory[float64](t, 1, 2)
	mixed := newType(t, TypeStruct(2, longList(t, 1, 1), longList(t, 0, 8), longList(t, typeOf("INT"), typeOf("DOUBLE"))))
	succeeds(t, TypeCommit(mixed))
	for name, c := range map[string]struct {
		class errs.Class
		text  string
		code  Code
	}{
		"null":                  {errs.Op, "OP_NULL", OpApply(0, typeOf("DOUBLE"), addr, addr, 1)},
		"no such operation":     {errs.Op, "OP_NULL or has been freed", OpApply(int64(op.NoOp)+1, typeOf("DOUBLE"), addr, addr, 1)},
		"not for this type":     {errs.Op, "MPI_BAND does not exist for elements of MPI_DOUBLE", OpApply(int64(op.Band), typeOf("DOUBLE"), addr, addr, 1)},
		"elements of two types": {errs.Type, "needs elements of one predefined type", OpApply(int64(op.Sum), mixed, addr, addr, 1)},
		"negative count":        {errs.Count, "the count -1 is negative", OpApply(int64(op.Sum), typeOf("DOUBLE"), addr, addr, -1)},
		"no memory":             {errs.Buffer, "is the buffer None", OpApply(int64(op.Sum), typeOf("DOUBLE"), addr, 0, 1)},
	} {
		t.Run(name, func(t *testing.T) { fails(t, c.class, c.text, c.code) })
	}
}

func TestBufferThatNoProgramHasIsAnError(t *testing.T) {
	for name, c := range map[string]struct {
		addr, count int64
		typ         string
		class       errs.Class
	}{
		"null":                 {0, 1, "INT", errs.Buffer},
		"close to null":        {4096, 1, "INT", errs.Buffer},
		"negative count":       {0, -1, "INT", errs.Count},
		"most that is counted": {0, 1 << 59, "DOUBLE", errs.Buffer},
		"more than is counted": {0, 1<<59 + 1, "DOUBLE", errs.Count},
		"nothing of null":      {0, 0, "INT", errs.Success},
	} {
		t.Run(name, func(t *testing.T) {
			_, e := buf(c.addr, c.count, typeOf(c.typ))
			assert.Equal(t, c.class, errs.Class(CodeOf(e)&0xff))
		})
	}
}

func TestSpanOfATypeForTheRecording(t *testing.T) {
	size, span := TraceSpan(typeOf("DOUBLE_INT"), 3)
	assert.EqualValues(t, 12, size)
	assert.EqualValues(t, 48, span)
	size, span = TraceSpan(0, 3)
	assert.Zero(t, size)
	assert.Zero(t, span)
}

func TestDescriptionsAreJSON(t *testing.T) {
	var world struct {
		Launcher   string
		Rank, Size int
	}
	require.NoError(t, json.Unmarshal([]byte(WorldInfo()), &world))
	assert.Equal(t, "none", world.Launcher)
	assert.Equal(t, 0, world.Rank)
	assert.Equal(t, 1, world.Size)

	var peer struct {
		Rank            int
		Transport       string
		Starting, Ended bool
	}
	require.NoError(t, json.Unmarshal([]byte(PeerInfo(0)), &peer))
	assert.Equal(t, "self", peer.Transport)
	assert.False(t, peer.Starting)
	assert.False(t, peer.Ended)
	assert.Equal(t, "null", PeerInfo(1))
	assert.Equal(t, "null", PeerInfo(-1))

	var transports []transport
	require.NoError(t, json.Unmarshal([]byte(Transports()), &transports))
	require.NotEmpty(t, transports)
	assert.Equal(t, transport{Name: "self", Usable: true, Ranks: 1, Text: transports[0].Text}, transports[0])

	var settings struct{ Table []setting }
	require.NoError(t, json.Unmarshal([]byte(Settings()), &settings))
	for _, s := range settings.Table {
		assert.Empty(t, s.Problem, s.Name)
		assert.False(t, s.Given, s.Name)
		assert.Equal(t, s.Default, s.Value, s.Name)
	}

	var waits struct{ Waits []waiting }
	require.NoError(t, json.Unmarshal([]byte(Waits()), &waits))
	assert.Empty(t, waits.Waits)
	assert.True(t, json.Valid([]byte(Runtime())))
}
