package launch

import (
	"fmt"
	"strings"
	"time"

	"gormapy/gocore/home"
)

// onTimeout asks the ranks what they do.
func (a *away) onTimeout() {
	if a.status != 0 {
		return
	}
	a.timedOut, a.status = true, statusTimeout
	a.asking = time.Now().Add(answerDelay)
	a.everyone(&home.Message{Kind: home.Describe})
}

// reportTimeout prints what the ranks have said, and has them print their stacks.
func (a *away) reportTimeout() {
	a.say(fmt.Sprintf("time-out after %v; what the ranks do:", a.opt.Timeout))
	for n, g := range a.all() {
		switch {
		case g == nil && a.absent[n] != nil:
			for _, line := range a.absent[n] {
				a.say("  " + line + "; it does not answer, as if it were stopped")
			}
		case g == nil:
			a.say(fmt.Sprintf("  rank %d: has not initialised MPI, or its host does not reach this one", n))
		case g.lines != nil:
			for _, line := range g.lines {
				if !g.says && !g.gone {
					line += "; it does not answer, as if it were stopped"
				}
				a.say("  " + line)
			}
		case g.gone:
			a.say(fmt.Sprintf("  rank %d (%s, pid %d): ended, or about to end", n, g.Host, g.PID))
		default:
			a.say(fmt.Sprintf("  rank %d (%s, pid %d): does not answer: it is stopped, or its host does not reach this one", n, g.Host, g.PID))
		}
	}
	if a.opt.OutputDir != "" {
		a.say("their stacks, if they print them, are in " + a.opt.OutputDir + "/rank.N.* on their hosts")
	}
	for _, g := range a.all() {
		if g != nil && !g.gone {
			a.printing = append(a.printing, g)
		}
	}
	if a.opt.Trace != "" || a.opt.Summary {
		a.everyone(&home.Message{Kind: home.Collect})
	}
	a.stacksAt = time.Now().Add(awayStackDelay)
}

// located puts the name of a host into lines about a rank.
func (a *away) located(lines []string, host string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = strings.Replace(line, "(pid ", "("+host+", pid ", 1)
	}
	return out
}

// printNext has a rank print its stacks, or a few if they are many: one after the other, since
// their lines would mix.
func (a *away) printNext() {
	if len(a.printing) == 0 || time.Since(a.printed) < max(time.Second/time.Duration(a.opt.Ranks()), tick) && time.Since(a.printed) < 5*tick {
		return
	}
	a.printed = time.Now()
	for range min(len(a.printing), 1+a.opt.Ranks()/64) {
		_ = a.printing[0].link.Send(&home.Message{Kind: home.Stacks})
		a.printing = a.printing[1:]
		a.stacksAt = time.Now().Add(awayStackDelay)
	}
}
