package rendezvous

import (
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/boot/storetest"
)

// byEnvironment joins n ranks, one after the other, whose variables differ.
func byEnvironment(t *testing.T, n int, join func() (*Store, error), set func(rank int)) []*Store {
	t.Helper()
	var ranks []*Store
	for r := range n {
		set(r)
		s, err := join()
		require.NoError(t, err)
		ranks = append(ranks, s)
	}
	return ranks
}

func TestSlurmStep(t *testing.T) {
	for name, value := range map[string]string{"CLUSTER_NAME": "c", "JOB_ID": strconv.Itoa(os.Getpid()), "STEP_ID": "0", "STEP_NUM_TASKS": "3",
		"STEP_NODELIST": "no-host-[3-4].invalid", "LAUNCH_NODE_IPADDR": "127.0.0.1"} {
		t.Setenv("SLURM_"+name, value)
	}
	ranks := byEnvironment(t, 3, Slurm, func(r int) {
		t.Setenv("SLURM_PROCID", strconv.Itoa(r))
		t.Setenv("SLURM_NODEID", strconv.Itoa(r%2))
	})
	each(ranks, func(s *Store) {
		nodes, err := s.Nodes()
		assert.NoError(t, err)
		assert.Equal(t, []int{0, 1, 0}, nodes)
		assert.Equal(t, "Slurm (none)", s.Name())
		assert.NoError(t, storetest.Play(s))
	})
	t.Setenv("SLURM_STEP_NODELIST", "")
	t.Setenv("SLURM_LAUNCH_NODE_IPADDR", "")
	_, err := Slurm()
	assert.ErrorContains(t, err, "--mpi=pmi2")
}

func TestRanked(t *testing.T) {
	for name, env := range map[string]map[string]string{
		"torchrun":   {"MASTER_ADDR": "127.0.0.1", "TORCHELASTIC_RUN_ID": "none", "TORCHELASTIC_USE_AGENT_STORE": "True"},
		"free port":  {"MASTER_ADDR": "localhost"},
		"rendezvous": {"GORMAPY_RENDEZVOUS": address(freePort(t)), "MASTER_ADDR": "no-host.invalid", "GORMAPY_SECRET": "mellon"},
	} {
		t.Run(name, func(t *testing.T) {
			port := freePort(t)
			t.Setenv("MASTER_PORT", strconv.Itoa(port))
			t.Setenv("WORLD_SIZE", "2")
			for n, v := range env {
				t.Setenv(n, v)
			}
			if env["TORCHELASTIC_USE_AGENT_STORE"] != "" {
				squat(t, port, "store")
			}
			ranks := byEnvironment(t, 2, Ranked, func(r int) {
				t.Setenv("RANK", strconv.Itoa(r))
				if name == "torchrun" {
					t.Setenv("GROUP_RANK", strconv.Itoa(r))
				}
			})
			each(ranks, func(s *Store) {
				nodes, err := s.Nodes()
				assert.NoError(t, err)
				assert.Equal(t, map[string][]int{"torchrun": {0, 1}}[name], nodes)
				assert.NoError(t, storetest.Play(s))
			})
		})
	}
	t.Setenv("MASTER_PORT", "0x")
	t.Setenv("MASTER_ADDR", "a")
	_, err := Ranked()
	assert.ErrorContains(t, err, `RANK is ""`)
	t.Setenv("RANK", "0")
	_, err = Ranked()
	assert.ErrorContains(t, err, `WORLD_SIZE is ""`)
	t.Setenv("WORLD_SIZE", "2")
	_, err = Ranked()
	assert.ErrorContains(t, err, "GORMAPY_RENDEZVOUS=HOST:PORT")
	t.Setenv(Timeout.Name, "soon")
	_, err = Join(0, 1, "a:1", "")
	assert.ErrorContains(t, err, `GORMAPY_RENDEZVOUS_TIMEOUT is "soon"`)
}
