package device

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// # Devices near a process
//
// A device belongs to a NUMA node, and so do cores. A process that is bound to cores uses a device
// that is at the smallest distance from them (the firmware's numbers), because traffic with
// another one crosses the link between processors. One that is not bound has no near devices.

// unknownNode is the NUMA node of a device of which the kernel does not say it, as of one in software. It is as near as the
// nearest of the others, which it does not displace.
const unknownNode = -1

// local is the firmware's distance of a NUMA node from itself.
const local = 10

// sysfs is where the kernel describes the machine.
const sysfs = "/sys"

// nearest returns those of the devices that are nearest to the processors in cpus, and which of
// these the process is to take: number counts, from 0 on, the processes of the host that choose.
// The processes of one NUMA node have either numbers that follow each other or, if they were bound
// in turn, as Slurm does, every second or fourth one. Both have to be spread over its devices.
func nearest(root string, devices []string, cpus []int, number int) (near []string, turn int) {
	nodes := numaNodes(root)
	var mine []int // NUMA nodes
	for n, of := range nodes {
		if slices.ContainsFunc(of, func(cpu int) bool { return slices.Contains(cpus, cpu) }) {
			mine = append(mine, n)
		}
	}
	const unknown = -1
	far, best := make([]int, len(devices)), int(^uint(0)>>1)
	for i, d := range devices {
		if at := numaNode(root, d); at == unknownNode || len(mine) == 0 {
			far[i] = unknown
		} else {
			far[i] = distance(root, mine, at)
			best = min(best, far[i])
		}
	}
	for i, d := range devices {
		if far[i] == best || far[i] == unknown {
			near = append(near, d)
		}
	}
	if len(near) == 0 {
		return nil, 0
	}
	if parts := len(devices) / len(near); parts > 1 {
		number += number / parts
	}
	return near, number % len(near)
}

// numaNodes returns the processors of each NUMA node, in ascending order.
func numaNodes(root string) map[int][]int {
	nodes := map[int][]int{}
	found, _ := filepath.Glob(filepath.Join(root, "devices/system/node/node[0-9]*"))
	for _, path := range found {
		n, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(path), "node"))
		b, missing := os.ReadFile(filepath.Join(path, "cpulist"))
		if err == nil && missing == nil {
			nodes[n] = cpuList(string(b))
		}
	}
	return nodes
}

// numaNode returns the NUMA node of an RDMA device.
func numaNode(root, device string) int {
	b, err := os.ReadFile(filepath.Join(root, "class/infiniband", device, "device/numa_node"))
	if err != nil {
		return unknownNode // a device in software has none
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || n < 0 {
		return unknownNode
	}
	return n
}

// distance returns the smallest of the distances of a NUMA node from others.
func distance(root string, from []int, to int) int {
	best := 255 // the firmware's number of a node that can't be reached
	for _, n := range from {
		if n == to {
			return local
		}
		b, err := os.ReadFile(filepath.Join(root, "devices/system/node", "node"+strconv.Itoa(n), "distance"))
		if list := strings.Fields(string(b)); err == nil && to < len(list) {
			if d, err := strconv.Atoi(list[to]); err == nil {
				best = min(best, d)
			}
		}
	}
	return best
}

// cpuList returns the processors of a list as the kernel writes it: 0-3,8.
func cpuList(text string) (cpus []int) {
	for part := range strings.SplitSeq(strings.TrimSpace(text), ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		a, err := strconv.Atoi(from)
		b, err2 := strconv.Atoi(to)
		if err != nil || err2 != nil || b-a > 1<<16 {
			continue
		}
		for cpu := a; cpu <= b; cpu++ {
			cpus = append(cpus, cpu)
		}
	}
	return cpus
}
