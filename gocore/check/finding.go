package check

import (
	"cmp"
	"fmt"
	"strings"
)

// Finding is one thing that is wrong with the program.
type Finding struct {
	Class     string   `json:"class"`
	Kind      string   `json:"kind"` // race or misuse
	Contested bool     `json:"contested,omitempty"`
	Accesses  []Access `json:"accesses"`
	Window    *Window  `json:"window"`
	Bytes     *Bytes   `json:"bytes"`
	Epoch     *Epoch   `json:"epoch"`
	Message   string   `json:"message"`
	Fix       string   `json:"fix"`
	Section   string   `json:"section"`
	Count     int      `json:"count"`

	key  string
	last *access // the later access, when it was found last
}

// Access is one of the calls, loads and stores of a finding.
type Access struct {
	Rank     int     `json:"rank"`
	Call     string  `json:"call"`
	File     string  `json:"file"`
	Line     int     `json:"line"`
	Text     string  `json:"text"`
	Variable string  `json:"variable"`
	Thread   int     `json:"thread"`
	Span     []int64 `json:"span,omitempty"` // from its first byte to its last, as Bytes
}

// Window is the window of a finding.
type Window struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Flavor string `json:"flavor"`
}

// Bytes are bytes of a window's part, or, outside of windows, of the memory of a rank.
type Bytes struct {
	Rank  int   `json:"rank"`
	Start int64 `json:"start"`
	Stop  int64 `json:"stop"`
	Of    int64 `json:"of,omitempty"` // bytes of the window's part
}

// Epoch is the epoch in which the later access was made.
type Epoch struct {
	Kind string `json:"kind"`
	File string `json:"file"`
	Line int    `json:"line"`
}

var flavors = map[int64]string{1: "Create", 2: "Allocate", 3: "Create_dynamic", 4: "Allocate_shared"}

func describe(w *window, sites ...*site) *Window {
	if w == nil {
		return nil
	}
	name := w.name
	for _, s := range sites {
		if name == "" && s != nil {
			name = s.winName
		}
	}
	return &Window{ID: w.key, Name: name, Flavor: flavors[w.flavor]}
}

func line(t *thread, s *site, call, variable string) Access {
	a := Access{Rank: -1, Call: call, File: s.file, Line: s.line, Text: s.text, Variable: variable}
	if t != nil {
		a.Rank, a.Thread = t.number, t.index
	}
	return a
}

// race records a race.
func (c *Checker) race(class Class, a, b *access, from, to int64, contested bool) {
	win := b.win
	if win == nil || a.op != nil {
		win = a.win
	}
	first, second := a, b
	if class.unordered() && a.by.rank != b.by.rank && b.listedBefore(a) {
		first, second = b, a
	}
	key := fmt.Sprint(class, first.site.file, first.site.line, second.site.file, second.site.line, first.call(), second.call(), winKey(win), a.by.number == b.by.number)
	if f := c.findings[key]; f != nil {
		if f.last == nil || f.last.op != nil || b.op != nil || f.last.by != b.by || f.last.runs.end() != b.runs.start {
			f.Count++
		} else if f.Count == 1 { // the same line goes on
			f.Bytes.Stop += to - from
		}
		f.last = b
		return
	}
	about := classes[class]
	f := &Finding{last: b, Class: about.name, Kind: "race", Contested: contested, Message: about.why, Fix: about.fix, Section: about.section, Count: 1,
		Window: describe(win, a.site, b.site)}
	f.Bytes = &Bytes{Rank: b.owner.number}
	base := a.runs.start
	if win != nil && (a.role == far || b.role == far || a.role == local && b.role == local) {
		if p := win.parts[b.owner.number]; p != nil {
			base, f.Bytes.Of = p.base, p.bytes
		}
	}
	f.Bytes.Start, f.Bytes.Stop = from-base, to-base
	for _, one := range []*access{first, second} {
		shown := line(one.by, one.site, one.call(), one.site.variable(one.role))
		shown.Span = []int64{one.runs.start - base, one.runs.end() - base}
		f.Accesses = append(f.Accesses, shown)
	}
	op := second.op
	if op == nil {
		op = first.op
	}
	if op != nil && op.epoch.site != nil {
		f.Epoch = &Epoch{op.epoch.kind, op.epoch.site.file, op.epoch.site.line}
	}
	if b.op != nil {
		f.key = key
		c.findings[key] = f
		b.by.unsettled = append(b.by.unsettled, f)
		return
	}
	c.record(key, f)
}

// listedBefore reports whether a is named before b in a finding about two ranks that have no order: by the program's text, so that the
// finding is the same whichever came first in this run.
func (a *access) listedBefore(b *access) bool {
	return cmp.Or(cmp.Compare(a.site.file, b.site.file), cmp.Compare(a.site.line, b.site.line), cmp.Compare(a.by.number, b.by.number)) < 0
}

func winKey(w *window) string {
	if w == nil {
		return ""
	}
	return w.key
}

// found records a misuse: the wrong call, and another one that it contradicts, if there is one.
func (c *Checker) found(class Class, t *thread, at, other *site, otherRank *rank, win *window, message string) {
	key := fmt.Sprint(class, at.file, at.line, at.call, winKey(win))
	if other != nil {
		key += fmt.Sprint(other.file, other.line)
	}
	if f := c.findings[key]; f != nil {
		f.Count++
		return
	}
	about := classes[class]
	f := &Finding{Class: about.name, Kind: "misuse", Message: message, Fix: about.fix, Section: about.section, Count: 1, Window: describe(win, at, other),
		Accesses: []Access{line(t, at, at.call, "")}}
	if other != nil {
		var by *thread
		if otherRank != nil {
			by = c.anyThread(otherRank.number)
		}
		f.Accesses = append(f.Accesses, line(by, other, other.call, ""))
	}
	c.record(key, f)
}

func (c *Checker) record(key string, f *Finding) {
	f.key = key
	c.findings[key] = f
	c.order = append(c.order, f)
	c.tell(f)
}

// settle tells of what was found about the operation that a rank has begun last, or forgets it if the operation has failed.
func (c *Checker) settle(r *rank, failed bool) {
	for _, f := range r.unsettled {
		if failed {
			delete(c.findings, f.key)
			continue
		}
		c.order = append(c.order, f)
		c.tell(f)
	}
	r.unsettled = nil
}

// String returns the finding as it is printed.
func (f *Finding) String() string {
	var s strings.Builder
	title := f.Class
	if f.Contested {
		title += " (contested)"
	}
	fmt.Fprintf(&s, "%s: %s\n", title, f.Message)
	for _, a := range f.Accesses {
		who := ""
		if a.Rank >= 0 {
			who = fmt.Sprintf("rank %d ", a.Rank)
		}
		variable := ""
		if a.Variable != "" {
			variable = " of " + a.Variable
		}
		fmt.Fprintf(&s, "    %s%s%s, %s:%d\n        %s\n", who, a.Call, variable, a.File, a.Line, strings.TrimSpace(a.Text))
	}
	if f.Window != nil {
		name := "a window"
		if f.Window.Name != "" {
			name = "window " + f.Window.Name
		}
		fmt.Fprintf(&s, "    %s (Win.%s)", name, f.Window.Flavor)
		if f.Bytes != nil {
			of := ""
			if f.Bytes.Of == 0 {
				of = " of the buffer"
			}
			fmt.Fprintf(&s, ", bytes %d to %d%s of rank %d", f.Bytes.Start, f.Bytes.Stop, of, f.Bytes.Rank)
		}
		if f.Epoch != nil {
			fmt.Fprintf(&s, ", in the epoch of %s, line %d", f.Epoch.Kind, f.Epoch.Line)
		}
		s.WriteString("\n")
	}
	fmt.Fprintf(&s, "    %s (MPI 4.1, section %s)", f.Fix, f.Section)
	return s.String()
}
