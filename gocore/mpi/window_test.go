package mpi

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/errs"
	"gormapy/gocore/op"
	"gormapy/gocore/rma"
)

// windowBytes is the size of the tests' windows: 8 elements of 4 bytes.
const windowBytes = 32

// newWindow makes a window of 32 bytes on COMM_SELF with a displacement unit of 4. The
// window is freed at the end of the test, which has to end its epochs.
func newWindow(t testing.TB, flavor rma.Flavor) int64 {
	t.Helper()
	addr, n := int64(0), int64(windowBytes)
	switch flavor {
	case rma.FlavorCreate:
		_, addr = memory(t, make([]int32, windowBytes/4)...)
	case rma.FlavorDynamic:
		n = 0
	}
	req, code := WinCreate(int(flavor), addr, n, 4, CommSelf, 0, 0)
	win := result(t, req, code)
	t.Cleanup(func() {
		if WinCheck(win) == 0 {
			req, code := WinFree(win)
			done(t, req, code)
		}
	})
	return win
}

// part returns the address of this process's part of a window.
func part(t testing.TB, win int64) (addr int64) {
	t.Helper()
	_, err := fmt.Sscan(WinShared(win, 0), &addr)
	require.NoError(t, err)
	return addr
}

func lock(t testing.TB, win int64) {
	t.Helper()
	succeeds(t, blocking(func(pending *int64) Code { return Lock(win, 0, LockExclusive, 0, pending) }))
}

func unlock(t testing.TB, win int64) {
	t.Helper()
	succeeds(t, blocking(func(pending *int64) Code { return Unlock(win, 0, pending) }))
}

func fence(win int64, assertion int) Code {
	return blocking(func(pending *int64) Code { return Fence(win, assertion, pending) })
}

// access returns an access of count INTs at addr to displacement disp of this process's
// part.
func access(kind AccessKind, win, addr, count, disp int64) *Access {
	i := typeOf("INT")
	return &Access{Kind: kind, Win: win, Origin: Operand{addr, count, i}, Target: TargetSpec{disp, count, i}}
}

func TestWindowOfEachFlavor(t *testing.T) {
	for _, flavor := range []rma.Flavor{rma.FlavorCreate, rma.FlavorAllocate, rma.FlavorShared} {
		t.Run(flavor.String(), func(t *testing.T) {
			win := newWindow(t, flavor)
			var d WinDescription
			succeeds(t, WinDescribe(win, &d))
			assert.Equal(t, WinDescription{d[0], windowBytes, 4, int64(flavor), 0, 1}, d)
			assert.Equal(t, fmt.Sprintf("%d %d 4", d[0], windowBytes), WinShared(win, 0))
			assert.Equal(t, "direct", WinPath(win, 0))
			assert.Empty(t, WinPath(win, 1))
			assert.False(t, WinLater(win, 0))
			assert.Empty(t, WinGone(win, 0))
			assert.Equal(t, []int{0}, worldRanks(t, WinGroup(win)))

			_, from := memory[int32](t, 1, 2, 3)
			got, to := memory(t, make([]int32, 3)...)
			lock(t, win)
			succeeds(t, RMA(access(KindPut, win, from, 3, 5)))
			succeeds(t, RMA(access(KindGet, win, to, 3, 5)))
			unlock(t, win)
			assert.Equal(t, []int32{1, 2, 3}, got)

			at := part(t, win) + 20
			assert.Equal(t, []int32{1, 2, 3}, ints(at, 3), "the put has changed the window's memory")

			retained := WinRetain(win, part(t, win))
			assert.Equal(t, flavor == rma.FlavorCreate, retained == 0, "memory of the program is not the window's")
			req, code := WinFree(win)
			done(t, req, code)
			if retained != 0 {
				assert.Equal(t, []int32{1, 2, 3}, ints(at, 3), "memory that is retained stays mapped")
				WinRelease(retained)
			}
			fails(t, errs.Win, "the window has been freed", WinCheck(win))
			assert.Nil(t, WinDesc(win))
		})
	}
}

func TestDynamicWindowHasWhatIsAttached(t *testing.T) {
	win := newWindow(t, rma.FlavorDynamic)
	attached, at := memory[int32](t, 1, 2, 3, 4)
	_, from := memory[int32](t, 9, 9)
	put := access(KindPut, win, from, 2, at+8) // displacements are addresses
	lock(t, win)
	defer unlock(t, win)
	fails(t, errs.RMARange, "which are not all attached", RMA(put))
	succeeds(t, WinAttach(win, at, 16))
	fails(t, errs.RMAAttach, "overlap", WinAttach(win, at+4, 4))
	succeeds(t, RMA(put))
	assert.Equal(t, []int32{1, 2, 9, 9}, attached)
	var mapped int64
	succeeds(t, WinAddress(win, 0, at+8, 8, &mapped))
	assert.Equal(t, at+8, mapped)
	put.Target.Disp += 4
	fails(t, errs.RMARange, "which are not all attached", RMA(put))
	fails(t, errs.RMAAttach, "attached regions begin at other addresses", WinDetach(win, at+4))
	succeeds(t, WinDetach(win, at))
	put.Target.Disp -= 4
	fails(t, errs.RMARange, "which are not all attached", RMA(put))
	assert.Contains(t, WinShared(win, 0), "error ")

	other := newWindow(t, rma.FlavorAllocate)
	fails(t, errs.RMAFlavor, "the window was made by Win.Allocate", WinAttach(other, at, 16))
	fails(t, errs.RMAFlavor, "the window was made by Win.Allocate", WinDetach(other, at))
	fails(t, errs.RMAFlavor, "the window was made by Win.Allocate", WinAddress(other, 0, 0, 4, &mapped))
}

func TestWindowIsMadeOfValidArgumentsOnly(t *testing.T) {
	for name, c := range map[string]struct {
		flavor            rma.Flavor
		bytes, unit, comm int64
		class             errs.Class
		text              string
	}{
		"null communicator":  {rma.FlavorAllocate, 8, 1, CommNull, errs.Comm, "COMM_NULL"},
		"negative size":      {rma.FlavorAllocate, -8, 1, CommSelf, errs.Size, "a window of -8 bytes"},
		"displacement unit":  {rma.FlavorAllocate, 8, 0, CommSelf, errs.Disp, "the displacement unit 0 is not positive"},
		"large unit":         {rma.FlavorAllocate, 8, 1 << 31, CommSelf, errs.Disp, "the displacement unit 2147483648"},
		"no such flavor":     {rma.FlavorShared + 1, 8, 1, CommSelf, errs.RMAFlavor, "there is no flavor 5"},
		"null memory":        {rma.FlavorCreate, 8, 1, CommSelf, errs.Buffer, "is the buffer None"},
		"more than there is": {rma.FlavorAllocate, 1 << 62, 1, CommSelf, errs.Size, "rank 0 asks for a window of"},
	} {
		t.Run(name, func(t *testing.T) {
			req, code := WinCreate(int(c.flavor), 0, c.bytes, c.unit, c.comm, 0, 0)
			if code == 0 { // the error is that of the collective
				code = waited(Interrupted, req, nil)
			}
			fails(t, c.class, c.text, code)
		})
	}
}

func TestNullWindow(t *testing.T) {
	second := func(_ int64, code Code) Code { return code }
	var pending, out int64
	for name, code := range map[string]Code{
		"check": WinCheck(0), "check free": WinCheckFree(0), "free": second(WinFree(0)), "no locks": WinNoLocks(0, true),
		"fence": Fence(0, 0, &pending), "lock": Lock(0, 0, LockShared, 0, &pending), "lock all": LockAll(0, 0, &pending),
		"unlock": Unlock(0, 0, &pending), "unlock all": UnlockAll(0, &pending), "flush": Flush(0, 0, &pending),
		"drain": CompleteAt(0, 0, &pending), "post": WinPost(0, GroupEmpty, 0), "start": WinStart(0, GroupEmpty, 0, &pending),
		"complete": WinComplete(0, &pending), "wait": WinWait(0, &pending), "test": WinTest(0, &out),
		"attach": WinAttach(0, 0, 0), "detach": WinDetach(0, 0), "group": int(-WinGroup(0)),
		"put": RMA(access(KindPut, 0, 0, 0, 0)), "rput": second(RMARequest(access(KindPut, 0, 0, 0, 0))),
		"compare and swap": CompareAndSwap(0, 0, 0, 0, typeOf("INT"), 0, 0), "address": WinAddress(0, 0, 0, 0, &out),
	} {
		t.Run(name, func(t *testing.T) { fails(t, errs.Win, "the window is WIN_NULL", code) })
	}
	assert.Nil(t, WinDesc(0))
	assert.Zero(t, WinRetain(0, 0))
}

func TestAccumulatesChangeTheTarget(t *testing.T) {
	win := newWindow(t, rma.FlavorAllocate)
	_, operand := memory[int32](t, 3, 4)
	old, result := memory(t, make([]int32, 2)...)
	target := ints(part(t, win), windowBytes/4)
	lock(t, win)
	defer unlock(t, win)
	for _, c := range []struct {
		name       string
		kind       AccessKind
		op         op.Op
		before     int32
		after, old int32 // of the first element; the second one is 10 more
	}{
		{"sum", KindAcc, op.Sum, 100, 103, 0},
		{"replace", KindAcc, op.Replace, 100, 3, 0},
		{"max", KindAcc, op.Max, 1, 3, 0},
		{"fetching sum", KindGetAcc, op.Sum, 100, 103, 100},
		{"fetching nothing", KindGetAcc, op.NoOp, 100, 100, 100},
		{"fetch and op", KindFetchOp, op.Sum, 100, 103, 100},
		{"fetch without op", KindFetchOp, op.NoOp, 100, 100, 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			target[2], old[0] = c.before, 0
			a := access(c.kind, win, operand, 1, 2)
			a.Op, a.Result = int64(c.op), Operand{result, 1, typeOf("INT")}
			succeeds(t, RMA(a))
			assert.Equal(t, []int32{c.after, c.old}, []int32{target[2], old[0]})
			assert.Zero(t, target[3])
		})
	}
}

func TestCompareAndSwap(t *testing.T) {
	win := newWindow(t, rma.FlavorAllocate)
	_, next := memory[int32](t, 7)
	expected, compare := memory[int32](t, 0)
	old, result := memory[int32](t, -1)
	target := ints(part(t, win), windowBytes/4)
	lock(t, win)
	defer unlock(t, win)
	swap := func() Code { return CompareAndSwap(win, next, compare, result, typeOf("INT"), 0, 3) }
	succeeds(t, swap())
	assert.Equal(t, []int32{7, 0}, []int32{target[3], old[0]})
	target[3] = 5
	succeeds(t, swap())
	assert.Equal(t, []int32{5, 5}, []int32{target[3], old[0]}, "5 is not what was expected")
	expected[0] = 5
	succeeds(t, swap())
	assert.Equal(t, []int32{7, 5}, []int32{target[3], old[0]})

	fails(t, errs.Type, "not MPI_DOUBLE", CompareAndSwap(win, next, compare, result, typeOf("DOUBLE"), 0, 0))
	fails(t, errs.Type, "DATATYPE_NULL", CompareAndSwap(win, next, compare, result, 0, 0, 0))
	fails(t, errs.Buffer, "is the buffer None", CompareAndSwap(win, next, 0, result, typeOf("INT"), 0, 0))
	fails(t, errs.RMARange, "it has 32 bytes", CompareAndSwap(win, next, compare, result, typeOf("INT"), 0, 8))
	fails(t, errs.Rank, "the target rank 1", CompareAndSwap(win, next, compare, result, typeOf("INT"), 1, 0))
	succeeds(t, CompareAndSwap(win, next, compare, result, typeOf("INT"), ProcNull, 0))
}

func TestAccessArgumentsAreChecked(t *testing.T) {
	win := newWindow(t, rma.FlavorAllocate)
	_, addr := memory(t, make([]int32, 16)...)
	i := typeOf("INT")
	pair := newType(t, TypeContiguous(i, 2))
	mixed := newType(t, TypeStruct(2, longList(t, 1, 1), longList(t, 0, 8), longList(t, i, typeOf("DOUBLE"))))
	uncommitted := newType(t, TypeContiguous(i, 1))
	for _, h := range []int64{pair, mixed} {
		succeeds(t, TypeCommit(h))
	}
	lock(t, win)
	defer unlock(t, win)
	sum, noOp := int64(op.Sum), int64(op.NoOp)
	one := Operand{addr, 1, i}
	for name, c := range map[string]struct {
		a     Access
		class errs.Class
		text  string
	}{
		"rank beyond the window":   {Access{Kind: KindPut, Origin: one, Rank: 1, Target: TargetSpec{0, 1, i}}, errs.Rank, "the target rank 1 is not in the window of 1 rank: its only rank is 0; it was made on COMM_SELF"},
		"negative rank":            {Access{Kind: KindGet, Origin: one, Rank: -1, Target: TargetSpec{0, 1, i}}, errs.Rank, "the target rank -1"},
		"negative origin count":    {Access{Kind: KindPut, Origin: Operand{addr, -1, i}, Target: TargetSpec{0, 1, i}}, errs.Count, "the count -1 is negative"},
		"negative target count":    {Access{Kind: KindPut, Origin: one, Target: TargetSpec{0, -2, i}}, errs.Count, "the count -2 is negative"},
		"negative displacement":    {Access{Kind: KindPut, Origin: one, Target: TargetSpec{-1, 1, i}}, errs.Disp, "the target displacement -1 is negative"},
		"beyond the end":           {Access{Kind: KindPut, Origin: one, Target: TargetSpec{8, 1, i}}, errs.RMARange, "bytes 32 to 36"},
		"displacement overflows":   {Access{Kind: KindGet, Origin: one, Target: TargetSpec{1 << 62, 1, i}}, errs.RMARange, "is beyond rank 0's part"},
		"null buffer":              {Access{Kind: KindPut, Origin: Operand{0, 1, i}, Target: TargetSpec{0, 1, i}}, errs.Buffer, "is the buffer None"},
		"null type at the origin":  {Access{Kind: KindPut, Origin: Operand{addr, 1, 0}, Target: TargetSpec{0, 1, i}}, errs.Type, "DATATYPE_NULL"},
		"null type at the target":  {Access{Kind: KindPut, Origin: one, Target: TargetSpec{0, 1, 0}}, errs.Type, "DATATYPE_NULL"},
		"type is not committed":    {Access{Kind: KindGet, Origin: Operand{addr, 1, uncommitted}, Target: TargetSpec{0, 1, i}}, errs.Type, "is not committed"},
		"sides of different sizes": {Access{Kind: KindPut, Origin: one, Target: TargetSpec{0, 2, i}}, errs.Type, "the target side describes 8 bytes (2 x MPI_INT), the origin side 4"},
		"no operation":             {Access{Kind: KindAcc, Origin: one, Target: TargetSpec{0, 1, i}}, errs.Op, "must be predefined"},
		"negative operation":       {Access{Kind: KindAcc, Origin: one, Target: TargetSpec{0, 1, i}, Op: -1}, errs.Op, "must be predefined"},
		"user-defined operation":   {Access{Kind: KindAcc, Origin: one, Target: TargetSpec{0, 1, i}, Op: noOp + 1}, errs.Op, "must be predefined"},
		"accumulate of nothing":    {Access{Kind: KindAcc, Origin: one, Target: TargetSpec{0, 1, i}, Op: noOp}, errs.Op, "NO_OP is for Get_accumulate and Fetch_and_op"},
		"operation for pairs":      {Access{Kind: KindAcc, Origin: one, Target: TargetSpec{0, 1, i}, Op: int64(op.Maxloc)}, errs.Op, "MPI_MAXLOC does not exist for elements of MPI_INT"},
		"elements that differ":     {Access{Kind: KindAcc, Origin: one, Target: TargetSpec{0, 1, typeOf("FLOAT")}, Op: sum}, errs.Type, "the same predefined type at origin (MPI_INT) and target (MPI_FLOAT)"},
		"elements of two types":    {Access{Kind: KindAcc, Origin: Operand{addr, 1, mixed}, Target: TargetSpec{0, 1, mixed}, Op: sum}, errs.Type, "not made of one predefined type"},
		"short result":             {Access{Kind: KindGetAcc, Origin: Operand{addr, 2, i}, Result: one, Target: TargetSpec{0, 2, i}, Op: sum}, errs.Type, "the result buffer describes 4 bytes, the target side 8"},
		"null result":              {Access{Kind: KindGetAcc, Origin: one, Result: Operand{0, 1, i}, Target: TargetSpec{0, 1, i}, Op: sum}, errs.Buffer, "is the buffer None"},
		"fetch of a derived type":  {Access{Kind: KindFetchOp, Origin: Operand{addr, 1, pair}, Result: one, Op: sum}, errs.Type, "Fetch_and_op takes a predefined datatype, not a derived one"},
		"fetch of the null type":   {Access{Kind: KindFetchOp, Origin: Operand{addr, 1, 0}, Result: one, Op: sum}, errs.Type, "DATATYPE_NULL"},
		"fetch with a wrong op":    {Access{Kind: KindFetchOp, Origin: Operand{addr, 1, typeOf("DOUBLE")}, Result: one, Op: int64(op.Bxor)}, errs.Op, "MPI_BXOR does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			c.a.Win = win
			fails(t, c.class, c.text, RMA(&c.a))
			if c.class != errs.Buffer {
				fails(t, c.class, c.text, RMACheck(&c.a))
			}
			if c.a.Kind != KindFetchOp { // which has no request-based form
				_, code := RMARequest(&c.a)
				fails(t, c.class, c.text, code)
			}
		})
	}
}

func TestAccessesThatAreCheckedNeedNoEpoch(t *testing.T) {
	win := newWindow(t, rma.FlavorAllocate)
	i := typeOf("INT")
	one, at := Operand{0, 1, i}, TargetSpec{3, 1, i}
	for _, kind := range []AccessKind{KindPut, KindGet, KindAcc, KindGetAcc, KindFetchOp, KindCompareAndSwap} {
		a := &Access{Kind: kind, Win: win, Origin: one, Result: one, Target: at, Op: int64(op.Sum)}
		succeeds(t, RMACheck(a))
		a.Target.Disp = 8
		fails(t, errs.RMARange, "bytes 32 to 36", RMACheck(a))
	}
	fails(t, errs.Type, "not MPI_DOUBLE", RMACheck(&Access{Kind: KindCompareAndSwap, Win: win, Origin: one, Target: TargetSpec{0, 1, typeOf("DOUBLE")}}))
	none := &Access{Kind: KindGetAcc, Win: win, Result: one, Target: at, Op: int64(op.NoOp)} // which has no origin
	succeeds(t, RMACheck(none))
}

func TestAccessOfTheNullProcessDoesNothing(t *testing.T) {
	win := newWindow(t, rma.FlavorAllocate) // with no epoch
	for _, kind := range []AccessKind{KindPut, KindGet, KindAcc, KindGetAcc, KindFetchOp} {
		t.Run(fmt.Sprint(kind), func(t *testing.T) {
			a := &Access{Kind: kind, Win: win, Rank: ProcNull, Op: int64(op.Sum)}
			succeeds(t, RMA(a))
			req, code := RMARequest(a)
			assert.Equal(t, Status{Source: ProcNull, Tag: AnyTag}, done(t, req, code))
		})
	}
}

func TestRequestBasedAccess(t *testing.T) {
	win := newWindow(t, rma.FlavorAllocate)
	_, from := memory[int32](t, 5)
	got, to := memory[int32](t, 0)
	_, code := RMARequest(access(KindPut, win, from, 1, 0))
	fails(t, errs.RMASync, "Rput: rank 0 is not locked; request-based operations need Lock(0) or Lock_all (Put is for every epoch)", code)
	lock(t, win)
	for _, kind := range []AccessKind{KindPut, KindAcc} {
		a := access(kind, win, from, 1, 0)
		a.Op = int64(op.Sum)
		req, code := RMARequest(a)
		assert.Equal(t, empty, done(t, req, code))
	}
	req, code := RMARequest(access(KindGet, win, to, 1, 0))
	done(t, req, code)
	assert.EqualValues(t, 10, got[0])
	unlock(t, win)
}

func TestAllocMem(t *testing.T) {
	var addr int64
	h, code := AllocMem(100, 256, &addr)
	succeeds(t, code)
	assert.Zero(t, addr%256)
	mem := bytesAt(addr, 100)
	assert.Equal(t, make([]byte, 100), mem)
	mem[99] = 1
	WinRelease(h)
	WinRelease(h) // a stale handle does nothing
	_, code = AllocMem(-1, 0, &addr)
	fails(t, errs.Size, "Alloc_mem of -1 bytes", code)
	_, code = AllocMem(8, 3, &addr)
	fails(t, errs.InfoValue, "must be a power of two", code)
}

func TestWordsOfAWindow(t *testing.T) {
	win := newWindow(t, rma.FlavorAllocate)
	addr, pending := part(t, win)+8, int64(0)
	word := longs(addr, 1)
	word[0] = 5
	succeeds(t, WordWait(win, addr, 5, -1, nil, "a counter", &pending))
	succeeds(t, WordWait(win, addr, 6, 0, nil, "a counter", &pending)) // the time is up
	fails(t, errs.Rank, "the rank to wait for 3", WordWait(win, addr, 6, -1, []int32{3}, "a counter", &pending))
	fails(t, errs.Win, "WIN_NULL", WordWait(0, addr, 6, -1, nil, "a counter", &pending))
	assert.NotNil(t, WordSleepers(win, 0))
	assert.Nil(t, WordSleepers(win, 1))
	WordRing(win, -1)
}
