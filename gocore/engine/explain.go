package engine

import (
	"gormapy/gocore/fabric"
)

// Refusal returns the reason why the transport of rank r can't do one-sided
// operations on its memory; empty if it can.
func (e *Engine) Refusal(r int) string {
	if x, ok := e.peers[r].via.(fabric.Explainer); ok {
		return x.Refusal(r)
	}
	return ""
}

// Reach returns the number of ranks that each transport of this process reaches.
func (e *Engine) Reach() map[string]int {
	reach := map[string]int{}
	for r := range e.Size {
		reach[e.peers[r].via.Name()]++
	}
	return reach
}
