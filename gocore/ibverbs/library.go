//go:build cgo

package ibverbs

// #cgo CFLAGS: -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Wno-unused-parameter
// #cgo LDFLAGS: -ldl -lpthread
// #cgo noescape gmv_poll
// #cgo nocallback gmv_poll
// #cgo noescape gmv_post_send
// #cgo nocallback gmv_post_send
// #cgo noescape gmv_post_recv
// #cgo nocallback gmv_post_recv
// #cgo noescape gmv_post_srq
// #cgo nocallback gmv_post_srq
// #include <stdlib.h>
// #include "calls.h"
import "C"

import (
	"fmt"
	"strings"
	"sync"
	"syscall"
	"unsafe"
)

// Work requests and completions have the same layout in Go and C.
var (
	_ [unsafe.Sizeof(SendWR{})]byte = [C.sizeof_struct_gmv_send]byte{}
	_ [unsafe.Sizeof(RecvWR{})]byte = [C.sizeof_struct_gmv_recv]byte{}
	_ [unsafe.Sizeof(WC{})]byte     = [C.sizeof_struct_ibv_wc]byte{}
)

// Library is libibverbs, loaded.
type Library struct {
	calls *C.struct_gmv_lib // in C memory, for good
}

var loaded struct {
	once sync.Once
	lib  *Library
	err  error
}

// Load opens libibverbs.so.1, once for all callers. The error is ErrNoLibrary with the
// loader's message.
func Load() (*Library, error) {
	loaded.once.Do(func() { loaded.lib, loaded.err = Open(defaultLibraryName) })
	return loaded.lib, loaded.err
}

// Open opens a library in another file.
func Open(file string) (*Library, error) {
	name := C.CString(file)
	defer C.free(unsafe.Pointer(name))
	lib := newLibrary()
	if why := C.gmv_open(name, lib.calls); why != nil {
		return nil, lib.unusable(why, "the package libibverbs1 or rdma-core has it")
	}
	return lib, nil
}

// OpenSymbols makes a library of the functions that find returns for their names. find is
// a C function like dlsym. Tests use it for a double of the verbs.
func OpenSymbols(find unsafe.Pointer) (*Library, error) {
	lib := newLibrary()
	if why := C.gmv_load(lib.calls, C.gmv_find(find), nil); why != nil {
		return nil, lib.unusable(why, "")
	}
	return lib, nil
}

func newLibrary() *Library {
	return &Library{calls: (*C.struct_gmv_lib)(C.calloc(1, C.sizeof_struct_gmv_lib))}
}

func (l *Library) unusable(why *C.char, hint string) error {
	text := C.GoString(why)
	C.free(unsafe.Pointer(why))
	C.free(unsafe.Pointer(l.calls))
	if hint != "" {
		text += "; " + hint
	}
	return fmt.Errorf("%w: %s", ErrNoLibrary, text)
}

// Devices returns the names of the devices. If there are none, the error is ErrNoDriver or
// ErrNoDevice.
func (l *Library) Devices() ([]string, error) {
	list, n, err := l.list()
	if err != nil {
		return nil, err
	}
	defer C.gmv_free_devices(l.calls, list)
	names := make([]string, n)
	for i := range names {
		names[i] = C.GoString(C.gmv_device_name(l.calls, list, C.int(i)))
	}
	return names, nil
}

func (l *Library) list() (**C.struct_ibv_device, int, error) {
	var list **C.struct_ibv_device
	var n C.int
	switch errno := C.gmv_devices(l.calls, &list, &n); {
	case syscall.Errno(errno) == syscall.ENOSYS || syscall.Errno(errno) == syscall.ENOENT:
		return nil, 0, fmt.Errorf("%w (modules ib_uverbs and that of a device, such as mlx5_ib, efa or rdma_rxe)", ErrNoDriver)
	case errno != 0:
		return nil, 0, &Error{"ibv_get_device_list", syscall.Errno(errno), ""}
	case n == 0:
		C.gmv_free_devices(l.calls, list)
		return nil, 0, fmt.Errorf("%w, though the kernel has the driver core", ErrNoDevice)
	}
	return list, int(n), nil
}

// Open opens the device of that name.
func (l *Library) Open(device string) (*Context, error) {
	list, n, err := l.list()
	if err != nil {
		return nil, err
	}
	defer C.gmv_free_devices(l.calls, list)
	var names []string
	for i := range n {
		name := C.GoString(C.gmv_device_name(l.calls, list, C.int(i)))
		if name != device {
			names = append(names, name)
			continue
		}
		c := &Context{lib: l, name: name}
		if errno := C.gmv_open_device(l.calls, list, C.int(i), &c.ptr); errno != 0 {
			return nil, &Error{"ibv_open_device", syscall.Errno(errno), "open " + name +
				" (/dev/infiniband/uverbs* must be readable and writable)"}
		}
		return c, nil
	}
	return nil, fmt.Errorf("%w named %q: there are %s", ErrNoDevice, device, strings.Join(names, ", "))
}

// closed returns the error of a call on a closed object.
func closed(call, what string) error {
	return &Error{call, syscall.EBADF, what + " was closed"}
}

func failed(call string, errno C.int, what string, args ...any) error {
	if errno == 0 {
		return nil
	}
	return &Error{call, syscall.Errno(errno), fmt.Sprintf(what, args...)}
}
