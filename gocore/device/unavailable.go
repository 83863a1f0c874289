package device

import "strings"

// Unavailable is the error of a request that can't be met on this machine.
type Unavailable struct {
	Asked  string   // what was asked for, such as `RDMA device "mlx5_9"`
	Found  []string // what there is
	Advice string   // what to do
	Err    error    // why
}

func (e *Unavailable) Error() string {
	found := "none"
	if len(e.Found) > 0 {
		found = strings.Join(e.Found, ", ")
	}
	return "asked for " + e.Asked + ": " + e.Err.Error() + "; there is " + found + "; " + e.Advice
}

// Unwrap returns why.
func (e *Unavailable) Unwrap() error { return e.Err }
