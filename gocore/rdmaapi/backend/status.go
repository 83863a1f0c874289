package backend

import "errors"

// Status is how a work request ended, numbered as ibv_wc_status.
type Status int

// The statuses of verbs.
const (
	Success       Status = 0
	LocLenErr     Status = 1
	LocQPOpErr    Status = 2
	LocEECOpErr   Status = 3
	LocProtErr    Status = 4
	WRFlushErr    Status = 5
	MWBindErr     Status = 6
	BadRespErr    Status = 7
	LocAccessErr  Status = 8
	RemInvReqErr  Status = 9
	RemAccessErr  Status = 10
	RemOpErr      Status = 11
	RetryExcErr   Status = 12
	RNRRetryExc   Status = 13
	LocRDDViolErr Status = 14
	RemInvRDReq   Status = 15
	RemAbortErr   Status = 16
	InvEECNErr    Status = 17
	InvEECState   Status = 18
	FatalErr      Status = 19
	RespTimeout   Status = 20
	GeneralErr    Status = 21
)

var statusNames = [...]string{
	"IBV_WC_SUCCESS", "IBV_WC_LOC_LEN_ERR", "IBV_WC_LOC_QP_OP_ERR", "IBV_WC_LOC_EEC_OP_ERR", "IBV_WC_LOC_PROT_ERR",
	"IBV_WC_WR_FLUSH_ERR", "IBV_WC_MW_BIND_ERR", "IBV_WC_BAD_RESP_ERR", "IBV_WC_LOC_ACCESS_ERR", "IBV_WC_REM_INV_REQ_ERR",
	"IBV_WC_REM_ACCESS_ERR", "IBV_WC_REM_OP_ERR", "IBV_WC_RETRY_EXC_ERR", "IBV_WC_RNR_RETRY_EXC_ERR",
	"IBV_WC_LOC_RDD_VIOL_ERR", "IBV_WC_REM_INV_RD_REQ_ERR", "IBV_WC_REM_ABORT_ERR", "IBV_WC_INV_EECN_ERR",
	"IBV_WC_INV_EEC_STATE_ERR", "IBV_WC_FATAL_ERR", "IBV_WC_RESP_TIMEOUT_ERR", "IBV_WC_GENERAL_ERR",
}

func (s Status) String() string {
	if s >= 0 && int(s) < len(statusNames) {
		return statusNames[s]
	}
	return "IBV_WC_GENERAL_ERR"
}

// Meaning returns what a status usually means, for people.
func (s Status) Meaning() string {
	switch s {
	case Success:
		return "done"
	case LocLenErr:
		return "the message is longer than the receive that was posted for it"
	case LocQPOpErr:
		return "the queue pair can't do this operation"
	case LocProtErr:
		return "the local memory is not, or no longer, registered for this"
	case WRFlushErr:
		return "the queue pair is in the error state, because an earlier work request failed or the connection is lost"
	case LocAccessErr:
		return "the local region does not allow what the peer did"
	case RemInvReqErr:
		return "the peer can't do what was asked: an atomic that is not aligned to 8 bytes, or a message longer than its receive"
	case RemAccessErr:
		return "the peer has no such key, or the region under this key ends before or does not allow the access"
	case RemOpErr:
		return "the peer failed to carry out the operation"
	case RetryExcErr:
		return "the peer does not answer: it has ended, or has closed its queue pair, or has not connected it"
	case RNRRetryExc:
		return "the peer has posted no receive for this message"
	}
	return "the device reported an error"
}

// ErrBusy is returned by Region.Close if the memory must be kept.
var ErrBusy = errors.New("a peer may still be writing to the memory")

// Errno is the error of a call that has had no effect, with C's name for it, such as
// ENOMEM.
type Errno struct {
	Name string
	Text string
}

func (e *Errno) Error() string { return e.Name + ": " + e.Text }
