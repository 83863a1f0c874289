package boot

import (
	"maps"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// vars is an environment: "A=1 B=2".
type vars string

func (v vars) split() map[string]string {
	all := map[string]string{}
	for _, word := range strings.Fields(string(v)) {
		name, value, _ := strings.Cut(word, "=")
		all[name] = value
	}
	return all
}

// set makes v all that the environment has of launchers.
func (v vars) set(t *testing.T) {
	t.Helper()
	t.Setenv(EnvTaken, "") // consume sets it
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		for _, prefix := range []string{"GORMAPY_JOB_", "GORMAPY_RENDEZVOUS", "GORMAPY_SECRET", "PMI_", "PMIX_", "HYDI_", "MPI_LOCAL",
			"SLURM_", "OMPI_", "PRTE_", "RANK", "WORLD_SIZE", "LOCAL_", "GROUP_", "MASTER_", "TORCHELASTIC_", "FLUX_"} {
			if strings.HasPrefix(name, prefix) {
				t.Setenv(name, "")
				os.Unsetenv(name)
			}
		}
	}
	for name, value := range v.split() {
		t.Setenv(name, value)
	}
}

// What each launcher sets, as far as it matters; seen live.
const (
	ours      vars = " GORMAPY_JOB_SEGMENT=/proc/7/fd/5 GORMAPY_JOB_RANK=1 GORMAPY_JOB_SIZE=2 PMI_FD=9 PMI_RANK=1 PMI_SIZE=2 "
	hydra     vars = " PMI_FD=7 PMI_RANK=3 PMI_SIZE=4 PMI_HOSTNAME=host1 MPI_LOCALNRANKS=2 MPI_LOCALRANKID=1 HYDI_CONTROL_FD=8 "
	hydraPort vars = " PMI_PORT=host0:4711 PMI_ID=3 PMI_HOSTNAME=host1 MPI_LOCALNRANKS=2 MPI_LOCALRANKID=1 HYDI_CONTROL_FD=8 "
	prterun   vars = " PMIX_NAMESPACE=prterun-host-123@1 PMIX_RANK=3 PMIX_SERVER_URI41=x PRTE_LAUNCHED=1 "
	mpirun    vars = prterun + " OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=3 PMIX_PREFIX=/opt/ompi "
	sbatch    vars = " SLURM_JOB_ID=17 SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_LOCALID=0 SLURM_NODEID=0 "
	salloc    vars = " SLURM_JOB_ID=17 SLURM_NTASKS=4 "
	srun      vars = " SLURM_JOB_ID=17 SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=4 SLURM_NTASKS=4 SLURM_NODEID=0 SLURM_STEP_NODELIST=n[1-2] "
	daemon    vars = " SLURM_JOB_ID=17 SLURM_STEP_ID=2 SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 SLURM_NTASKS=2 SLURM_MPI_TYPE=pmix "
	pmi2      vars = srun + " PMI_FD=10 PMI_RANK=1 PMI_SIZE=4 PMI_JOBID=17.0 SLURM_MPI_TYPE=pmi2 "
	pmixStep  vars = srun + " PMIX_NAMESPACE=slurm.pmix.17.0 PMIX_RANK=1 SLURM_MPI_TYPE=pmix "
	flux      vars = " FLUX_JOB_ID=f1 FLUX_TASK_RANK=1 PMI_FD=11 PMI_RANK=1 PMI_SIZE=4 "
	torch     vars = " RANK=3 WORLD_SIZE=4 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 GROUP_RANK=1 MASTER_ADDR=n1 MASTER_PORT=29500 TORCHELASTIC_RUN_ID=none TORCHELASTIC_RESTART_COUNT=0 TORCHELASTIC_USE_AGENT_STORE=True "
	operator  vars = " RANK=1 WORLD_SIZE=2 MASTER_ADDR=job-master-0 MASTER_PORT=23456 "
	byHand    vars = " RANK=1 WORLD_SIZE=2 GORMAPY_RENDEZVOUS=n1:5000 "
)

func TestFind(t *testing.T) {
	for name, c := range map[string]struct {
		env  vars
		kind kind
		name string
		err  string
	}{
		"nothing":                        {"", kindNone, "none", ""},
		"gormapy's":                      {ours, kindOwn, "mpiexec", ""},
		"gormapy's in a Slurm step":      {srun + ours, kindOwn, "mpiexec", ""},
		"Hydra":                          {hydra, kindPMI1, "Hydra", ""},
		"Hydra with a port":              {hydraPort, kindPMI1, "Hydra", ""},
		"PRRTE":                          {prterun, kindPMIx, "PRRTE", ""},
		"Open MPI":                       {mpirun, kindPMIx, "Open MPI", ""},
		"srun --mpi=pmi2":                {pmi2, kindPMI1, "Slurm (pmi2)", ""},
		"srun --mpi=pmix":                {pmixStep, kindPMIx, "Slurm (pmix)", ""},
		"srun --mpi=none":                {srun, kindStep, "Slurm", ""},
		"Flux":                           {flux, kindPMI1, "Flux", ""},
		"torchrun":                       {torch, kindRanked, "torchrun", ""},
		"Kubernetes":                     {operator, kindRanked, "RANK and WORLD_SIZE", ""},
		"by hand":                        {byHand, kindRanked, "RANK and WORLD_SIZE", ""},
		"another PMI-1":                  {"PMI_FD=3 PMI_RANK=0 PMI_SIZE=1", kindPMI1, "PMI-1", ""},
		"another PMIx":                   {"PMIX_NAMESPACE=x PMIX_RANK=0", kindPMIx, "PMIx", ""},
		"salloc mpirun":                  {daemon + mpirun, kindPMIx, "Open MPI", ""},
		"salloc prterun":                 {daemon + prterun, kindPMIx, "PRRTE", ""},
		"salloc mpiexec.hydra":           {daemon + hydra, kindPMI1, "Hydra", ""},
		"salloc mpiexec.hydra -pmi-port": {daemon + hydraPort, kindPMI1, "Hydra", ""},
		"srun torchrun":                  {srun + torch, kindRanked, "torchrun", ""},
		"a batch script":                 {sbatch, kindNone, "none", ""},
		"the shell of salloc":            {salloc, kindNone, "none", ""},
		"a step of one task":             {srun + "SLURM_STEP_NUM_TASKS=1", kindNone, "none", ""},
		"a step without a number":        {srun + "SLURM_STEP_NUM_TASKS=x", kindNone, "none", ""},
		"settings only":                  {"OMPI_MCA_btl=self PMIX_MCA_gds=hash PMI_DEBUG=1 GORMAPY_SECRET=x", kindNone, "none", ""},
		"torchrun of one":                {torch + "WORLD_SIZE=1 RANK=0", kindNone, "none", ""},
		"a batch script for torch":       {srun + "WORLD_SIZE=4 MASTER_ADDR=n1 MASTER_PORT=1", kindStep, "Slurm", ""},
		"RANK in a step, no address":     {srun + "RANK=0 WORLD_SIZE=4", kindStep, "Slurm", ""},
		"RANK without an address":        {"RANK=0 WORLD_SIZE=4", 0, "", "GORMAPY_RENDEZVOUS=HOST:PORT"},
		"RANK with half an address":      {"RANK=0 WORLD_SIZE=4 MASTER_ADDR=a", 0, "", "RANK=0 and WORLD_SIZE=4"},
		"RANK that is no number":         {"RANK=high WORLD_SIZE=4", kindNone, "none", ""},
		"half of PMI-1":                  {"PMI_FD=7", 0, "", "PMI_FD is set, but not PMI_RANK and PMI_SIZE"},
		"half of PMIx":                   {"PMIX_NAMESPACE=prterun-host-123@1", 0, "", "PMIX_RANK"},
		// Other launchers started by ranks of gormapy's, whose variables their ranks inherit.
		"Hydra in gormapy's":           {ours + hydra, kindPMI1, "Hydra", ""},
		"PRRTE in gormapy's":           {ours + prterun, kindPMIx, "PRRTE", ""},
		"srun --mpi=pmi2 in gormapy's": {ours + pmi2, kindPMI1, "Slurm (pmi2)", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.env.set(t)
			l, err := find()
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, launcher{c.kind, c.name}, l)
		})
	}
}

// TestConsume: no child of a rank takes the rank's variables for its own, and the ranks of
// a launch inside are ranks.
func TestConsume(t *testing.T) {
	for name, env := range map[string]vars{
		"Hydra": hydra, "a port": hydraPort, "PRRTE": prterun, "Open MPI": mpirun, "pmi2": pmi2, "pmix": pmixStep, "step": srun,
		"torchrun": torch, "operator": operator, "by hand": byHand, "salloc mpirun": daemon + mpirun, "srun torchrun": srun + torch,
		"a setting with a mark": byHand + "MASTER_ADDR=a;b",
	} {
		t.Run(name, func(t *testing.T) {
			env.set(t)
			l, err := find()
			require.NoError(t, err)
			require.NotEqual(t, kindNone, l.kind)
			names := consume()
			for _, n := range names {
				assert.Regexp(t, `^(PMI_|PMIX_|HYDI_|MPI_LOCAL)`, n)
				assert.NotContains(t, os.Environ(), n)
			}
			l, err = find()
			require.NoError(t, err)
			assert.Equal(t, launcher{kindNone, "none"}, l, "a child takes itself for a rank")
			out, err := exec.Command("env").Output() // of C, too
			require.NoError(t, err)
			assert.NotRegexp(t, `(?m)^(PMI_|PMIX_|HYDI_)`, string(out))

			t.Setenv("RANK", "7") // for another library
			t.Setenv("WORLD_SIZE", "9")
			if os.Getenv(torchRun) == "" {
				l, err = find()
				require.NoError(t, err)
				assert.Equal(t, kindNone, l.kind, "a child of a rank that sets RANK")
			}
			for inner, want := range map[vars]kind{
				hydra: kindPMI1, prterun: kindPMIx, srun + "SLURM_STEP_ID=5": kindStep,
				torch + "MASTER_PORT=31000 RANK=1 WORLD_SIZE=2": kindRanked, ours: kindOwn,
			} {
				t.Run("and inside", func(t *testing.T) {
					for n, v := range maps.All(inner.split()) {
						t.Setenv(n, v)
					}
					if inner == ours { // whose launcher drops the mark
						t.Setenv(EnvTaken, "")
					}
					l, err := find()
					require.NoError(t, err)
					assert.Equal(t, want, l.kind, string(inner))
				})
			}
		})
	}
}

// TestInsideGormapys: what ranks of gormapy's mpiexec start.
func TestInsideGormapys(t *testing.T) {
	(srun + ours).set(t)
	consume()
	l, err := find()
	require.NoError(t, err)
	assert.Equal(t, kindOwn, l.kind, "the segment tells a child that it is none")
	t.Setenv("SLURM_STEP_ID", "1")
	l, err = find()
	require.NoError(t, err)
	assert.Equal(t, kindStep, l.kind, "srun --mpi=none")
	t.Setenv("SLURM_STEP_ID", "0")
	for n, v := range torch.split() {
		t.Setenv(n, v)
	}
	l, err = find()
	require.NoError(t, err)
	assert.Equal(t, kindRanked, l.kind, "torchrun")
}
