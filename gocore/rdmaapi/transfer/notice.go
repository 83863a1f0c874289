package transfer

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"

	"gormapy/gocore/rdmaapi/backend"
)

// A notice is sent to the target of a transfer on each lane that carried a piece:
// magic, number of these lanes, serial number of the transfer, uid.
const (
	noticeBytes = 24
	noticeMagic = 0x4e6d7267 // "grmN"
)

func putNotice(b []byte, lanes uint32, serial, uid uint64) {
	binary.LittleEndian.PutUint32(b, noticeMagic)
	binary.LittleEndian.PutUint32(b[4:], lanes)
	binary.LittleEndian.PutUint64(b[8:], serial)
	binary.LittleEndian.PutUint64(b[16:], uid)
}

func parseNotice(b []byte) (lanes uint32, serial, uid uint64, ok bool) {
	if len(b) != noticeBytes || binary.LittleEndian.Uint32(b) != noticeMagic {
		return 0, 0, 0, false
	}
	lanes = binary.LittleEndian.Uint32(b[4:])
	return lanes, binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:]), lanes >= 1 && lanes <= maxLanes
}

// slab is registered memory for notices. It is outside of Go's heap, because a device
// writes to it.
type slab struct {
	mem    []byte
	region backend.Region
}

func newSlab(pd backend.PD, notices int) (*slab, error) {
	mem, err := unix.Mmap(-1, 0, notices*noticeBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, &backend.Errno{Name: "ENOMEM", Text: "map memory for notices: " + err.Error()}
	}
	region, err := pd.Register(unsafe.Pointer(&mem[0]), len(mem), backend.LocalWrite)
	if err != nil {
		unix.Munmap(mem) //nolint:errcheck // there is another error to report
		return nil, err
	}
	return &slab{mem, region}, nil
}

func (s *slab) at(i int) []byte { return s.mem[i*noticeBytes : (i+1)*noticeBytes] }

func (s *slab) pointer(i int) unsafe.Pointer { return unsafe.Pointer(&s.mem[i*noticeBytes]) }

// close frees the memory, unless a peer may still write to it.
func (s *slab) close() {
	if s.region.Close() == nil {
		unix.Munmap(s.mem) //nolint:errcheck // the memory was mapped
	}
}
