package boot

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"gormapy/gocore/boot/rendezvous"
)

// kind is how a process joins the job of its launcher.
type kind int

const (
	kindNone   kind = iota // there is no launcher: a job of one
	kindOwn                // gormapy's mpiexec: package launch
	kindPMI1               // Hydra, Flux, srun --mpi=pmi2: package boot/pmi
	kindPMIx               // Open MPI, PRRTE, srun --mpi=pmix: package boot/pmix
	kindRanked             // RANK and WORLD_SIZE with an address: package boot/rendezvous
	kindStep               // srun --mpi=none: package boot/rendezvous
)

// EnvTaken marks the environment of a rank that has joined its job: variables that stay
// reach its children, which are no ranks. Its value says of which launch they were, since
// launches inside have values of their own beside the old mark.
const EnvTaken = "GORMAPY_JOB_TAKEN"

// launcher is what the environment says of the launcher of this process.
type launcher struct {
	kind kind
	name string // for people
}

// find finds out by which launcher this process was started. The order matters, because
// a launcher's variables reach processes that it does not know of:
//
//   - PMI-1 and PMIx name a connection, and are dropped by the rank that uses it
//     (consume). Whoever sets them does so for the ranks themselves.
//   - gormapy's mpiexec gives its ranks PMI_FD, too, for other MPI libraries. But what
//     Hydra, PRRTE and Slurm set beside it is not there: a rank of gormapy may start
//     them, and their ranks inherit the variables of gormapy's.
//   - torchrun and its like may run in a Slurm step, one agent a node.
//   - RANK and WORLD_SIZE may be set by a rank for another library, so that its children
//     have them.
//   - In salloc mpirun, srun starts the daemons, and the ranks inherit the variables of
//     the daemon: those of a Slurm step come last. A batch script and the shell of salloc
//     have some of them and are no step.
//
// An environment that is that of a rank, but can't be joined, is an error: a job of
// singletons would give wrong results without a word.
func find() (launcher, error) {
	slurm, torch := fresh()
	inStep := slurm && has("SLURM_STEP_ID") && has("SLURM_PROCID") && number("SLURM_STEP_NUM_TASKS") > 1
	switch {
	case has(EnvSegment) && !inside(inStep || torch && has(torchRun)):
		return launcher{kindOwn, "mpiexec"}, nil
	case has("PMI_FD") && !(has(EnvSegment) && has("PMIX_NAMESPACE")): // else it is of gormapy's, outside
		if !has("PMI_RANK") || !has("PMI_SIZE") {
			return launcher{}, incomplete("PMI_FD", "PMI_RANK", "PMI_SIZE")
		}
		return launcher{kindPMI1, pmiName()}, nil
	case has("PMI_PORT") && has("PMI_ID"):
		return launcher{kindPMI1, pmiName()}, nil
	case has("PMIX_NAMESPACE"):
		if !has("PMIX_RANK") {
			return launcher{}, incomplete("PMIX_NAMESPACE", "PMIX_RANK")
		}
		return launcher{kindPMIx, pmixName(os.Getenv("PMIX_NAMESPACE"))}, nil
	}
	if torch && number("WORLD_SIZE") > 1 && number("RANK") >= 0 {
		switch {
		case rendezvous.Given():
			return launcher{kindRanked, rankedName()}, nil
		case !inStep:
			return launcher{}, fmt.Errorf("RANK=%s and WORLD_SIZE=%s are set, but not where to find rank 0: set GORMAPY_RENDEZVOUS=HOST:PORT to an address of rank 0 and a free port there (or MASTER_ADDR and MASTER_PORT), or unset RANK and WORLD_SIZE if this is no rank",
				os.Getenv("RANK"), os.Getenv("WORLD_SIZE"))
		}
	}
	if inStep {
		return launcher{kindStep, "Slurm"}, nil
	}
	return launcher{kindNone, "none"}, nil
}

// inside reports whether another launcher was started by a rank of gormapy's mpiexec,
// which drops the variables of others: launch is true for one that is known to be new.
func inside(launch bool) bool {
	return has("HYDI_CONTROL_FD") || has("PMI_HOSTNAME") || has("PMI_PORT") || has("PMI_JOBID") || has("PMIX_NAMESPACE") ||
		has(EnvTaken) && launch
}

func has(name string) bool { return os.Getenv(name) != "" }

// number returns the number in a variable, -1 if there is none.
func number(name string) int {
	n, err := strconv.Atoi(os.Getenv(name))
	if err != nil {
		return -1
	}
	return n
}

func incomplete(name string, others ...string) error {
	return fmt.Errorf("%s is set, but not %s: was the environment of a rank copied in part? Unset %s to run without a launcher",
		name, strings.Join(others, " and "), name)
}

func pmiName() string {
	switch {
	case has("HYDI_CONTROL_FD") || has("PMI_HOSTNAME"): // before Slurm's: salloc mpiexec
		return "Hydra"
	case has("FLUX_JOB_ID"):
		return "Flux"
	case has("PMI_JOBID") && has("SLURM_STEP_ID"):
		return "Slurm (pmi2)"
	}
	return "PMI-1"
}

// pmixName goes by the namespace: variables of Slurm and Open MPI are inherited.
func pmixName(namespace string) string {
	switch {
	case strings.HasPrefix(namespace, "slurm.pmix."):
		return "Slurm (pmix)"
	case has("OMPI_COMM_WORLD_SIZE"):
		return "Open MPI"
	case has("PRTE_LAUNCHED") || strings.HasPrefix(namespace, "prterun-"):
		return "PRRTE"
	}
	return "PMIx"
}

func rankedName() string {
	if has(torchRun) {
		return "torchrun"
	}
	return "RANK and WORLD_SIZE"
}

// torchRun is set by torchrun alone.
const torchRun = "TORCHELASTIC_RUN_ID"

// slurmLaunch and torchLaunch have values of their own in each launch. RANK is not among
// them: a rank may set it for a child.
var (
	slurmLaunch = []string{"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_PROCID"}
	torchLaunch = []string{torchRun, "TORCHELASTIC_RESTART_COUNT", "MASTER_ADDR", "MASTER_PORT"}
)

// mark returns the value of EnvTaken for the present environment.
func mark() string { return values(slurmLaunch) + ";" + values(torchLaunch) }

func values(names []string) string {
	var all []string
	for _, name := range names {
		all = append(all, strings.ReplaceAll(os.Getenv(name), ";", ","))
	}
	return strings.Join(all, " ")
}

// fresh reports whether variables of a Slurm step and RANK, if they are there, are of a
// launch that no rank above this process has joined. Below a rank, RANK counts only if it
// is torchrun's.
func fresh() (slurm, torch bool) {
	if !has(EnvTaken) {
		return true, true
	}
	oldSlurm, oldTorch, _ := strings.Cut(os.Getenv(EnvTaken), ";")
	return values(slurmLaunch) != oldSlurm, has(torchRun) && values(torchLaunch) != oldTorch
}

// dropped are the prefixes of the variables of PMI-1 and PMIx, and of whole names.
var dropped = [...]string{"PMI_", "PMIX_", "HYDI_", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"}

// consume keeps programs that this rank starts from taking the launcher's variables for
// their own. It drops those of PMI-1 and PMIx, whose names it returns, and marks as taken
// what stays because programs use it. It is for all kinds of launchers: a rank of PRRTE
// may have the variables of a Slurm step, too.
//
// It changes Go's environment and, in a program with C in it, C's, which children inherit
// (os.Unsetenv does both). Python's os.environ is a copy, which the caller has to change
// likewise: programs pass it on.
//
// The variables of gormapy's mpiexec stay: a rank is granted once, and the segment tells
// who comes second that it is none.
func consume() (names []string) {
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if slices.ContainsFunc(dropped[:], func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			names = append(names, name)
			os.Unsetenv(name)
		}
	}
	os.Setenv(EnvTaken, mark())
	return names
}
