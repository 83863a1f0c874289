package rendezvous

import (
	"errors"
	"fmt"
	"os"
	"strconv"
)

// Given reports whether the environment says where rank 0 of RANK and WORLD_SIZE is.
func Given() bool {
	return Address.Given() || os.Getenv("MASTER_ADDR") != "" && os.Getenv("MASTER_PORT") != ""
}

// Join joins a job whose ranks know their places themselves. address is a host and a port
// of rank 0, by which the others reach it, as host:port; secret is what all must know, or empty
// for that of the settings.
func Join(rank, size int, address, secret string) (*Store, error) {
	where, err := parsePlace(address)
	if err != nil {
		return nil, err
	}
	j := job{name: "gormapy.join", rank: rank, size: size, node: unknownNode, where: where, secret: []byte(secret)}
	return j.join(fmt.Sprintf("join %v %d", where.ports, size))
}

// Slurm joins the job of the Slurm step that this process is a task of, which was
// started without a process manager (srun --mpi=none).
//
// Rank 0 is on the step's first host; where node names are not names of hosts, the step
// was probably started on it. The identity of the job is that of the step and its user.
func Slurm() (*Store, error) {
	rank, err := numbered("SLURM_PROCID")
	if err != nil {
		return nil, err
	}
	size, err := numbered("SLURM_STEP_NUM_TASKS")
	if err != nil {
		return nil, err
	}
	node, err := numbered("SLURM_NODEID")
	if err != nil {
		node = unknownNode
	}
	identity := fmt.Sprintf("Slurm %s %s.%s %d", os.Getenv("SLURM_CLUSTER_NAME"), os.Getenv("SLURM_JOB_ID"), os.Getenv("SLURM_STEP_ID"), os.Getuid())
	var where place
	for _, host := range []string{firstHost(os.Getenv("SLURM_STEP_NODELIST")), os.Getenv("SLURM_LAUNCH_NODE_IPADDR")} {
		if host != "" {
			where.hosts = append(where.hosts, host)
		}
	}
	if len(where.hosts) == 0 {
		return nil, errors.New("this is a task of a Slurm step, but neither SLURM_STEP_NODELIST nor SLURM_LAUNCH_NODE_IPADDR says where the others are: try srun --mpi=pmi2")
	}
	where.ports = derivedPorts(identity)
	j := job{name: "Slurm (none)", rank: rank, size: size, node: node, where: where}
	return j.join(identity)
}

// Ranked joins the job of RANK and WORLD_SIZE. Rank 0 is at GORMAPY_RENDEZVOUS or, without
// it, at MASTER_ADDR. There it takes MASTER_PORT, if torchrun's agent has not taken it for
// a store of its own, or the port of a derived number.
//
// GROUP_RANK, or that there are as many ranks as on this host, is a hint at nodes.
func Ranked() (*Store, error) {
	rank, err := numbered("RANK")
	if err != nil {
		return nil, err
	}
	size, err := numbered("WORLD_SIZE")
	if err != nil {
		return nil, err
	}
	node, err := numbered("GROUP_RANK")
	if err != nil {
		node = unknownNode
		if local, err := numbered("LOCAL_WORLD_SIZE"); err == nil && local == size {
			node = 0
		}
	}
	where, identity, err := meeting()
	if err != nil {
		return nil, err
	}
	j := job{name: "RANK and WORLD_SIZE", rank: rank, size: size, node: node, where: where}
	if os.Getenv("TORCHELASTIC_RUN_ID") != "" {
		j.name = "torchrun"
	}
	return j.join(fmt.Sprintf("%s %d", identity, size))
}

// meeting returns where rank 0 of RANK and WORLD_SIZE is, and the identity of the job.
func meeting() (place, string, error) {
	run := os.Getenv("TORCHELASTIC_RUN_ID") + " " + os.Getenv("TORCHELASTIC_RESTART_COUNT")
	if Address.Given() {
		where, err := parsePlace(Address.Value())
		if err != nil {
			return place{}, "", fmt.Errorf("%s: %w", Address.Name, err)
		}
		return where, fmt.Sprint(where.ports, " ", run), nil
	}
	host, port := os.Getenv("MASTER_ADDR"), os.Getenv("MASTER_PORT")
	n, err := parsePort(port)
	if err != nil || host == "" {
		return place{}, "", fmt.Errorf("MASTER_ADDR is %q and MASTER_PORT is %q: set GORMAPY_RENDEZVOUS=HOST:PORT to an address of rank 0", host, port)
	}
	// Not the host: Kubernetes' operators tell rank 0 that it is localhost.
	identity := port + " " + run
	where := place{hosts: []string{host}, ports: derivedPorts(identity), wide: true}
	if agent, _ := strconv.ParseBool(os.Getenv("TORCHELASTIC_USE_AGENT_STORE")); !agent {
		where.ports = append([]int{n}, where.ports...)
	}
	return where, identity, nil
}

// numbered returns the number in a variable, which is not negative.
func numbered(name string) (int, error) {
	n, err := strconv.Atoi(os.Getenv(name))
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s is %q: it must be a number", name, os.Getenv(name))
	}
	return n, nil
}
