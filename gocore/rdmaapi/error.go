package rdmaapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"gormapy/gocore/rdmaapi/backend"
)

// Error is the reason why a call did nothing, or the failure of a work request.
type Error struct {
	Status    string           `json:"status"`    // IBV_WC_..., or the name of an errno
	Operation string           `json:"operation"` // the call or the kind of work request
	Text      string           `json:"text"`      // the request, the limit or cause, the remedy
	Sizes     map[string]int64 `json:"sizes"`     // bytes or counts
}

func (e *Error) Error() string { return e.Operation + ": " + e.Text + " (" + e.Status + ")" }

// sizes are the numbers of an Error.
type sizes map[string]int64

func refuse(status, operation string, s sizes, format string, args ...any) *Error {
	return &Error{Status: status, Operation: operation, Text: fmt.Sprintf(format, args...), Sizes: s}
}

// from turns an error of a back end into an Error.
func from(err error, operation string, s sizes) *Error {
	if err == nil {
		return nil
	}
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	var errno *backend.Errno
	if errors.As(err, &errno) {
		return &Error{Status: errno.Name, Operation: operation, Text: errno.Text, Sizes: s}
	}
	if errors.Is(err, backend.ErrBusy) {
		return &Error{Status: "EBUSY", Operation: operation, Text: err.Error() + ": it does not answer, and the memory must never be freed", Sizes: s}
	}
	return &Error{Status: "EIO", Operation: operation, Text: err.Error(), Sizes: s}
}

// texts holds the latest errors. A code becomes an exception at once, so a ring
// is enough.
var texts struct {
	sync.Mutex
	next int
	ring [1 << 12]*Error
}

// code stores an error and returns a negative code for it; nil is 0.
func code(e *Error) int64 {
	if e == nil {
		return 0
	}
	texts.Lock()
	defer texts.Unlock()
	texts.next = texts.next%(len(texts.ring)-1) + 1
	texts.ring[texts.next] = e
	return -int64(texts.next)
}

// ErrorOf returns the error of a code, a JSON object.
func ErrorOf(c int64) string {
	e := &Error{Status: "EIO", Text: "an error that was forgotten: 4096 came after it"}
	if c < 0 && -c < int64(len(texts.ring)) {
		texts.Lock()
		if texts.ring[-c] != nil {
			e = texts.ring[-c]
		}
		texts.Unlock()
	}
	b, err := json.Marshal(e)
	if err != nil {
		return "{}"
	}
	return string(b)
}

// contain turns a panic into an error code, so that none ends the interpreter.
func contain(operation string, c *int64) {
	if p := recover(); p != nil {
		*c = code(refuse("EFAULT", operation, nil, "internal error: %v\n%s", p, debug.Stack()))
	}
}
