package sys

import (
	"sync"

	"golang.org/x/sys/unix"
)

// SystemMemory returns how many bytes of memory and swap space the system has; 0 if it does not tell.
var SystemMemory = sync.OnceValue(func() uint64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return (uint64(info.Totalram) + uint64(info.Totalswap)) * uint64(info.Unit)
})

// NewBytes returns n bytes for a copy of the program's data. If they are more than the system has, the program has described data
// that it can't have: NewBytes panics with a *Fault. Go would end the process.
func NewBytes(n int) []byte {
	if all := SystemMemory(); n < 0 || all > 0 && uint64(n) > all {
		panic(&Fault{Bytes: uint64(n)})
	}
	return make([]byte, n)
}
