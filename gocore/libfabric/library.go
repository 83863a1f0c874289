//go:build cgo

package libfabric

/*
#cgo CFLAGS: -D_GNU_SOURCE -Wall
#cgo LDFLAGS: -ldl -lpthread
#include <stdlib.h>
#include "glue.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"
)

// sonames are tried in turn. Users choose another library by the dynamic linker's means
// (LD_LIBRARY_PATH).
var sonames = []string{"libfabric.so.1", "libfabric.so.2", "libfabric.so"}

// apiVersion demands the behaviour of libfabric 1.14, the oldest supported version.
const apiVersion = 1<<16 | 14

// ErrMissing is wrapped by the errors of Open if there is no library.
var ErrMissing = errors.New("libfabric is not installed")

var (
	loaded   atomic.Pointer[Library]
	loading  sync.Mutex
	loadFail error
)

// Library is the opened library.
type Library struct {
	Major, Minor int
	// Soname is the name it was found by.
	Soname string
}

// Defaults are environment variables of libfabric that take effect when it initialises.
// The user's values come first.
type Defaults struct {
	// Universe is how many processes will communicate, 0 for 64. Providers size queues
	// by it, and small devices refuse the size for libfabric's own default, 256.
	Universe int
}

// Open opens and initialises the library once in a process, and never closes it. It is
// safe for concurrent use. Only the first call uses d.
//
// It sets these variables, unless the user's environment has them:
//   - FI_MR_CACHE_MONITOR=disabled: otherwise providers patch malloc's system
//     calls in the whole process (memhooks), to cache registrations of memory that
//     is not registered by its owner. This program does not need that cache.
//   - FI_HMEM=system: otherwise each process initialises the CUDA, ROCm and Level Zero
//     run times that it finds, for device memory that this program does not use.
//   - FI_EFA_FORK_SAFE=1: Python programs fork.
//   - FI_UNIVERSE_SIZE: see Defaults.
//
// Signal handlers that providers and their libraries install are removed.
func Open(d Defaults) (*Library, error) {
	if l := loaded.Load(); l != nil {
		return l, nil
	}
	loading.Lock()
	defer loading.Unlock()
	if l := loaded.Load(); l != nil {
		return l, nil
	}
	if loadFail != nil {
		return nil, loadFail
	}
	l, err := open(d)
	if err != nil {
		loadFail = err
		return nil, err
	}
	loaded.Store(l)
	return l, nil
}

func open(d Defaults) (*Library, error) {
	defaults := map[string]string{"FI_MR_CACHE_MONITOR": "disabled", "FI_HMEM": "system", "FI_EFA_FORK_SAFE": "1"}
	if d.Universe <= 0 {
		d.Universe = 64
	}
	defaults["FI_UNIVERSE_SIZE"] = strconv.Itoa(d.Universe)
	for name, value := range defaults {
		setenv(name, value)
	}
	C.gm_fi_keep_signals()
	defer C.gm_fi_restore_signals()
	var why []string
	for _, soname := range sonames {
		path := C.CString(soname)
		text := C.gm_fi_load(path)
		C.free(unsafe.Pointer(path))
		if text != nil {
			why = append(why, C.GoString(text))
			continue
		}
		v := uint32(C.gm_fi_version())
		if v < apiVersion {
			return nil, fmt.Errorf("open libfabric: %s is version %d.%d, and 1.14 is needed", soname, v>>16, v&0xffff)
		}
		// The result does not matter: it may be that there is no provider.
		C.gm_fi_init(apiVersion)
		return &Library{Major: int(v >> 16), Minor: int(v & 0xffff), Soname: soname}, nil
	}
	return nil, fmt.Errorf("%w (%s): install it, for instance the package libfabric1 of Debian", ErrMissing, strings.Join(why, "; "))
}

// setenv sets a variable that the environment does not have, for C code only: children that
// Go or Python start should not inherit it.
func setenv(name, value string) {
	n, v := C.CString(name), C.CString(value)
	C.gm_fi_setenv(n, v)
	C.free(unsafe.Pointer(n))
	C.free(unsafe.Pointer(v))
}

// Version returns the library's version as the library writes it.
func (l *Library) Version() string { return fmt.Sprintf("%d.%d", l.Major, l.Minor) }
