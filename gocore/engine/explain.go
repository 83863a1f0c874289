package engine

import (
	"gormapy/gocore/fabric"
)

// Refusal says why one-sided operations on the memory of rank r can't be left
// to its transport; empty if they can.
func (e *Engine) Refusal(r int) string {
	if x, ok := e.peers[r].via.(fabric.Explainer); ok {
		return x.Refusal(r)
	}
	return ""
}

// Reach is how many ranks each transport of this process leads to.
func (e *Engine) Reach() map[string]int {
	reach := map[string]int{}
	for r := range e.peers {
		reach[e.peers[r].via.Name()]++
	}
	return reach
}
