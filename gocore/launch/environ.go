package launch

import (
	"fmt"
	"strings"

	"gormapy/gocore/job"
)

// idVariable marks every process of a job; see sweep.
const idVariable = "GORMAPY_JOB_ID"

// foreign are the prefixes of variables about an outer job, which the ranks are not
// part of.
var foreign = [...]string{"GORMAPY_JOB_", "PMI_", "PMIX_", "HYDI_", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"}

// environ makes the environment that all ranks share from the launcher's own
// and the additions; in a variable given twice, the last value counts.
func environ(own, add []string) []string {
	out := make([]string, 0, len(own)+len(add)+4)
	at := make(map[string]int, cap(out))
	put := func(kv string) {
		key, _, _ := strings.Cut(kv, "=")
		if i, ok := at[key]; ok {
			out[i] = kv
			return
		}
		at[key] = len(out)
		out = append(out, kv)
	}
next:
	for _, kv := range own {
		for _, p := range foreign {
			if strings.HasPrefix(kv, p) {
				continue next
			}
		}
		put(kv)
	}
	for _, kv := range add {
		put(kv)
	}
	return out
}

// searchPath returns the directories that programs are searched in: the value of PATH
// in env, or the default of execvp(3).
func searchPath(env []string) string {
	for _, kv := range env {
		if path, ok := strings.CutPrefix(kv, "PATH="); ok {
			return path
		}
	}
	return "/bin:/usr/bin"
}

// rankEnviron adds the variables that make a process rank r of the job: for gormapy
// the segment and the number of its program (MPI_APPNUM), for MPICH the connection to
// the PMI-1 server. MPI_LOCAL* are MPICH's variables for the rank on this host.
func rankEnviron(shared []string, seg *job.Segment, r, app int, more ...string) []string {
	size := len(seg.Ranks)
	own := append(shared[:len(shared):len(shared)], more...)
	return environ(nil, append(own,
		"GORMAPY_JOB_SEGMENT="+seg.Path(),
		fmt.Sprintf("GORMAPY_JOB_RANK=%d", r),
		fmt.Sprintf("GORMAPY_JOB_SIZE=%d", size),
		fmt.Sprintf("GORMAPY_JOB_APPNUM=%d", app),
		idVariable+"="+seg.ID(),
		fmt.Sprintf("PMI_FD=%d", pmiFD),
		fmt.Sprintf("PMI_RANK=%d", r),
		fmt.Sprintf("PMI_SIZE=%d", size),
		fmt.Sprintf("MPI_LOCALRANKID=%d", r),
		fmt.Sprintf("MPI_LOCALNRANKS=%d", size)))
}
