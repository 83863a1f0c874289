package boot

import (
	"errors"
	"fmt"

	"gormapy/gocore/boot/pmi"
	"gormapy/gocore/boot/pmix"
	"gormapy/gocore/boot/rendezvous"
	"gormapy/gocore/boot/store"
)

// join connects to the store of the job of a launcher that is not gormapy's.
func (l launcher) join() (s store.Store, err error) {
	switch l.kind {
	case kindPMI1:
		var c *pmi.Client
		if c, err = pmi.Connect(); err == nil {
			s, err = pmi.NewStore(c, l.name)
		}
	case kindPMIx:
		s, err = pmix.Connect(l.name)
	case kindStep:
		s, err = rendezvous.Slurm()
	case kindRanked:
		s, err = rendezvous.Ranked()
	default:
		err = errors.New("it has no store")
	}
	if err != nil {
		return nil, fmt.Errorf("join the job of %s: %w", l.name, err)
	}
	return s, nil
}
