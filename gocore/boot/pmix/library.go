//go:build cgo

package pmix

// #cgo CFLAGS: -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra
// #cgo LDFLAGS: -ldl -lpthread
// #include <stdlib.h>
// #include "glue.h"
import "C"

import (
	"fmt"
	"strings"
	"sync"
	"unsafe"
)

var loaded struct {
	once sync.Once
	path string
	err  error
}

// load opens the first candidate that can be opened, once in a process and for good: it has
// threads. It returns the library's name.
func load() (string, error) {
	loaded.once.Do(func() { loaded.path, loaded.err = open(candidates()) })
	return loaded.path, loaded.err
}

func open(all []candidate) (string, error) {
	var failures []string
	for _, c := range all {
		path := C.CString(c.path)
		text := C.gm_pmix_load(path)
		C.free(unsafe.Pointer(path))
		if text == nil {
			return c.path, nil
		}
		why := C.GoString(text)
		C.free(unsafe.Pointer(text))
		// The linker's text names the library, too.
		failures = append(failures, fmt.Sprintf("%s (%s): %s", c.path, c.why, strings.TrimPrefix(why, c.path+": ")))
	}
	return "", fmt.Errorf("no libpmix can be opened: set %s to the file of the launcher's own. Tried: %s", Library.Name, strings.Join(failures, "; "))
}

// version returns the library's version in short: "5.0.11rc1".
func version() string {
	text := C.GoString(C.gm_pmix_version())
	text, _, _ = strings.Cut(text, "(") // "OpenPMIx 5.0.11rc1 (PMIx Standard: …)", "OpenPMIx 4.2.2, repo rev: …"
	text, _, _ = strings.Cut(text, ",")
	return strings.TrimSpace(strings.TrimPrefix(text, "OpenPMIx"))
}
