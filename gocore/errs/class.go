package errs

// Class is an MPI error class, numbered as in the MPI 5.0 ABI.
type Class int

// The error classes.
const (
	Success              Class = 0
	Buffer               Class = 1
	Count                Class = 2
	Type                 Class = 3
	Tag                  Class = 4
	Comm                 Class = 5
	Rank                 Class = 6
	Request              Class = 7
	Root                 Class = 8
	Group                Class = 9
	Op                   Class = 10
	Topology             Class = 11
	Dims                 Class = 12
	Arg                  Class = 13
	Unknown              Class = 14
	Truncate             Class = 15
	Other                Class = 16
	Intern               Class = 17
	Pending              Class = 18
	InStatus             Class = 19
	Access               Class = 20
	Amode                Class = 21
	Assert               Class = 22
	BadFile              Class = 23
	Base                 Class = 24
	Conversion           Class = 25
	Disp                 Class = 26
	DupDatarep           Class = 27
	FileExists           Class = 28
	FileInUse            Class = 29
	File                 Class = 30
	InfoKey              Class = 31
	InfoNokey            Class = 32
	InfoValue            Class = 33
	Info                 Class = 34
	IO                   Class = 35
	Keyval               Class = 36
	Locktype             Class = 37
	Name                 Class = 38
	NoMem                Class = 39
	NotSame              Class = 40
	NoSpace              Class = 41
	NoSuchFile           Class = 42
	Port                 Class = 43
	Quota                Class = 44
	ReadOnly             Class = 45
	RMAAttach            Class = 46
	RMAConflict          Class = 47
	RMARange             Class = 48
	RMAShared            Class = 49
	RMASync              Class = 50
	RMAFlavor            Class = 51
	Service              Class = 52
	Session              Class = 53
	Size                 Class = 54
	Spawn                Class = 55
	UnsupportedDatarep   Class = 56
	UnsupportedOperation Class = 57
	ValueTooLarge        Class = 58
	Win                  Class = 59
	ProcAborted          Class = 60
	ProcFailed           Class = 61
	ProcFailedPending    Class = 62
	Revoked              Class = 63
	Errhandler           Class = 64
)

var classNames = [...]string{
	"MPI_SUCCESS",
	"MPI_ERR_BUFFER",
	"MPI_ERR_COUNT",
	"MPI_ERR_TYPE",
	"MPI_ERR_TAG",
	"MPI_ERR_COMM",
	"MPI_ERR_RANK",
	"MPI_ERR_REQUEST",
	"MPI_ERR_ROOT",
	"MPI_ERR_GROUP",
	"MPI_ERR_OP",
	"MPI_ERR_TOPOLOGY",
	"MPI_ERR_DIMS",
	"MPI_ERR_ARG",
	"MPI_ERR_UNKNOWN",
	"MPI_ERR_TRUNCATE",
	"MPI_ERR_OTHER",
	"MPI_ERR_INTERN",
	"MPI_ERR_PENDING",
	"MPI_ERR_IN_STATUS",
	"MPI_ERR_ACCESS",
	"MPI_ERR_AMODE",
	"MPI_ERR_ASSERT",
	"MPI_ERR_BAD_FILE",
	"MPI_ERR_BASE",
	"MPI_ERR_CONVERSION",
	"MPI_ERR_DISP",
	"MPI_ERR_DUP_DATAREP",
	"MPI_ERR_FILE_EXISTS",
	"MPI_ERR_FILE_IN_USE",
	"MPI_ERR_FILE",
	"MPI_ERR_INFO_KEY",
	"MPI_ERR_INFO_NOKEY",
	"MPI_ERR_INFO_VALUE",
	"MPI_ERR_INFO",
	"MPI_ERR_IO",
	"MPI_ERR_KEYVAL",
	"MPI_ERR_LOCKTYPE",
	"MPI_ERR_NAME",
	"MPI_ERR_NO_MEM",
	"MPI_ERR_NOT_SAME",
	"MPI_ERR_NO_SPACE",
	"MPI_ERR_NO_SUCH_FILE",
	"MPI_ERR_PORT",
	"MPI_ERR_QUOTA",
	"MPI_ERR_READ_ONLY",
	"MPI_ERR_RMA_ATTACH",
	"MPI_ERR_RMA_CONFLICT",
	"MPI_ERR_RMA_RANGE",
	"MPI_ERR_RMA_SHARED",
	"MPI_ERR_RMA_SYNC",
	"MPI_ERR_RMA_FLAVOR",
	"MPI_ERR_SERVICE",
	"MPI_ERR_SESSION",
	"MPI_ERR_SIZE",
	"MPI_ERR_SPAWN",
	"MPI_ERR_UNSUPPORTED_DATAREP",
	"MPI_ERR_UNSUPPORTED_OPERATION",
	"MPI_ERR_VALUE_TOO_LARGE",
	"MPI_ERR_WIN",
	"MPI_ERR_PROC_ABORTED",
	"MPI_ERR_PROC_FAILED",
	"MPI_ERR_PROC_FAILED_PENDING",
	"MPI_ERR_REVOKED",
	"MPI_ERR_ERRHANDLER",
}

var classTexts = [...]string{
	"no error",
	"invalid buffer pointer",
	"invalid count argument",
	"invalid datatype argument",
	"invalid tag argument",
	"invalid communicator",
	"invalid rank",
	"invalid request",
	"invalid root",
	"invalid group",
	"invalid operation",
	"invalid topology",
	"invalid dimension argument",
	"invalid argument of some other kind",
	"unknown error",
	"message truncated",
	"known error not in this list",
	"internal error",
	"pending request",
	"error code in status",
	"permission denied",
	"amode",
	"invalid assertion argument",
	"bad file",
	"invalid base address",
	"conversion",
	"invalid displacement argument",
	"dup datarep",
	"file exists",
	"file in use",
	"invalid file handle",
	"invalid info key",
	"info key not defined",
	"invalid info value",
	"invalid info object",
	"input or output error",
	"invalid attribute key",
	"invalid lock type argument",
	"name",
	"out of memory",
	"not same",
	"no space",
	"file does not exist",
	"port",
	"quota",
	"read only",
	"memory cannot be attached or is not attached",
	"conflicting accesses to window",
	"target memory is not part of the window",
	"memory cannot be shared",
	"wrong synchronization of RMA calls",
	"wrong flavor of window",
	"service",
	"session",
	"invalid size argument",
	"spawn",
	"unsupported datarep",
	"unsupported operation",
	"value too large",
	"invalid window",
	"the job was aborted",
	"process failed or ended",
	"a process failed while the request was pending",
	"communicator revoked",
	"invalid error handler",
}

// String returns the class's name in the MPI standard.
func (c Class) String() string {
	if c >= 0 && int(c) < len(classNames) {
		return classNames[c]
	}
	return "MPI_ERR_UNKNOWN"
}

// Text returns the class's name and its standard text.
func (c Class) Text() string {
	if c >= 0 && int(c) < len(classTexts) {
		return c.String() + ": " + classTexts[c]
	}
	return "MPI_ERR_UNKNOWN: unknown error class"
}
