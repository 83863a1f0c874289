package boot

import (
	"fmt"
	"os"

	"gormapy/gocore/boot/pmi"
)

// viaPMI joins a job of Hydra or of srun --mpi=pmi2.
func viaPMI() (*Place, error) {
	c, err := pmi.Connect()
	if err != nil {
		return nil, fmt.Errorf("join the job of the PMI-1 launcher: %w", err)
	}
	name := "PMI-1"
	if os.Getenv("HYDI_CONTROL_FD") != "" {
		name = "Hydra"
	} else if os.Getenv("SLURM_STEP_ID") != "" {
		name = "Slurm (pmi2)"
	}
	s, err := pmi.NewStore(c, name)
	if err != nil {
		return nil, fmt.Errorf("join the job of %s: %w", name, err)
	}
	p, err := join(s)
	if err != nil {
		return nil, err
	}
	p.Abort = func(code int) {
		letOutputPass()
		s.Abort(code)
	}
	p.Finalize = s.Finalize
	return p, nil
}
