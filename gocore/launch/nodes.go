package launch

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"gormapy/gocore/job"
)

// nodesVariable divides the job of one host into nodes, which share no memory and have a
// segment and an agent each, as if they were hosts of their own. It is for tests of jobs
// on several hosts. Its value is
//
//	2        a number of nodes, with consecutive ranks
//	1+2      the number of ranks of each node
//	0,1,1    the number of the node of each rank, from the first one again if there are more
const nodesVariable = "GORMAPY_JOB_NODES"

// pretendedNodes returns the number of the node of each rank.
func pretendedNodes(text string, ranks int) ([]int, error) {
	nodes := make([]int, ranks)
	if text == "" {
		return nodes, nil
	}
	wrong := func(why string) ([]int, error) {
		return nil, UsageError(fmt.Sprintf("%s=%s: %s", nodesVariable, text, why))
	}
	sep := "+"
	if strings.Contains(text, ",") {
		sep = ","
	}
	var numbers []int
	for _, field := range strings.Split(text, sep) {
		n, err := strconv.Atoi(field)
		if err != nil || n < 0 || n > job.MaxRanks {
			return wrong(fmt.Sprintf("%q is no number of nodes or ranks", field))
		}
		numbers = append(numbers, n)
	}
	if sep == "+" && len(numbers) == 1 {
		for r := range nodes {
			nodes[r] = r * min(max(numbers[0], 1), ranks) / ranks
		}
		return nodes, nil
	}
	if sep == "+" {
		var each []int
		for node, n := range numbers {
			for range n {
				each = append(each, node)
			}
		}
		numbers = each
	}
	if sep == "," {
		for r := range nodes {
			nodes[r] = numbers[r%len(numbers)]
		}
		numbers = nodes
	}
	if len(numbers) != ranks {
		return wrong(fmt.Sprintf("it places %d ranks, the job has %d", len(numbers), ranks))
	}
	used := map[int]bool{}
	for _, n := range numbers {
		used[n] = true
	}
	for n := range len(used) {
		if !used[n] {
			return wrong(fmt.Sprintf("there are %d nodes, and none has the number %d", len(used), n))
		}
	}
	return numbers, nil
}

// segment returns the segment of the node of rank r.
func (l *launcher) segment(r int) *job.Segment { return l.segs[l.seg.NodeOf(r)] }

// record returns the record of rank r in the segment of its node.
func (l *launcher) record(r int) *job.Rank { return &l.segment(r).Ranks[r] }

// onOtherNodes calls f for the segments of the nodes that rank r is not on. What the launcher
// decides they learn from itself: the agent of the rank's node may have ended with the rank.
func (l *launcher) onOtherNodes(r int, f func(*job.Segment)) {
	for node, seg := range l.segs {
		if node != l.seg.NodeOf(r) {
			f(seg)
		}
	}
}

// aborted is Aborted of the first segment that knows of an abort.
func (l *launcher) aborted() (rank, code int, yes bool) {
	for _, seg := range l.segs {
		if atomic.LoadUint32(&seg.Head.AbortState) != 0 {
			return seg.Aborted()
		}
	}
	return 0, 0, false
}
