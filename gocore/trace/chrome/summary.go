package chrome

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// maxColumns is up to how many ranks the table has a column for each.
const maxColumns = 8

// row is a line of the table: all calls of one name.
type row struct {
	name    string
	calls   int
	bytes   int64
	wait    int64
	total   int64
	byRank  []int64 // time
	longest int64
}

// Summary returns a table of the time that each rank spent in each call.
func (r *Recording) Summary() string {
	rows := map[string]*row{}
	all := &row{name: "all calls", byRank: make([]int64, r.Ranks)}
	for i := range r.calls {
		c := &r.calls[i]
		of := rows[c.name]
		if of == nil {
			of = &row{name: c.name, byRank: make([]int64, r.Ranks)}
			rows[c.name] = of
		}
		for _, to := range []*row{of, all} {
			to.calls++
			to.bytes += c.bytes
			to.wait += c.wait
			to.total += c.end - c.begin
			to.byRank[c.rank] += c.end - c.begin
			to.longest = max(to.longest, c.end-c.begin)
		}
	}
	sorted := make([]*row, 0, len(rows)+1)
	for _, of := range rows {
		sorted = append(sorted, of)
	}
	slices.SortFunc(sorted, func(a, b *row) int {
		if a.total != b.total {
			return cmp.Compare(b.total, a.total)
		}
		return strings.Compare(a.name, b.name)
	})
	var out strings.Builder
	fmt.Fprintf(&out, "what %s did in %s: milliseconds in MPI calls\n", count(r.Ranks, "rank"), seconds(r.end))
	fmt.Fprintf(&out, "%-22s %9s %11s %10s %10s %10s", "call", "calls", "bytes", "total", "waiting", "longest")
	few := r.Ranks <= maxColumns
	if few {
		for rank := range r.Ranks {
			fmt.Fprintf(&out, " %9s", fmt.Sprintf("rank %d", rank))
		}
	} else {
		fmt.Fprintf(&out, " %9s %9s", "least", "most")
	}
	out.WriteByte('\n')
	for _, of := range append(sorted, all) {
		fmt.Fprintf(&out, "%-22s %9d %11s %10s %10s %10s", of.name, of.calls, size(of.bytes), millis(of.total), millis(of.wait), millis(of.longest))
		shown := of.byRank
		if !few {
			shown = []int64{slices.Min(shown), slices.Max(shown)}
		}
		for _, ns := range shown {
			fmt.Fprintf(&out, " %9s", millis(ns))
		}
		out.WriteByte('\n')
	}
	r.messagesText(&out)
	for _, line := range r.Incomplete() {
		out.WriteString(line + "\n")
	}
	return out.String()
}

// Incomplete returns lines about what the recording lacks, and about ranks that ended in
// a call.
func (r *Recording) Incomplete() []string {
	var lines []string
	for _, rank := range r.absent {
		lines = append(lines, fmt.Sprintf("rank %d recorded nothing: its program did not use gormapy.MPI, or did not get that far", rank))
	}
	for rank := range r.Ranks {
		if n := r.dropped[rank]; n > 0 {
			lines = append(lines, fmt.Sprintf("rank %d: the last %d events found no room and are not in the recording (GORMAPY_TRACE_EVENTS makes more)", rank, n))
		}
	}
	for i := range r.calls {
		if c := &r.calls[i]; !c.finished {
			lines = append(lines, fmt.Sprintf("rank %d was in %s when it ended, for %s ms", c.rank, c.name, millis(c.end-c.begin)))
		}
	}
	return lines
}

func (r *Recording) messagesText(out *strings.Builder) {
	n, bytes, lost := 0, int64(0), 0
	for i := range r.messages {
		if m := &r.messages[i]; m.sent >= 0 {
			n++
			bytes += m.bytes
			if m.received < 0 {
				lost++
			}
		}
	}
	if n > 0 {
		fmt.Fprintf(out, "%s of %s", count(n, "message"), size(bytes))
		if lost > 0 {
			fmt.Fprintf(out, ", of which %d not received", lost)
		}
		out.WriteByte('\n')
	}
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func seconds(ns int64) string { return fmt.Sprintf("%.6f s", float64(ns)/1e9) }
func millis(ns int64) string  { return fmt.Sprintf("%.3f", float64(ns)/1e6) }

// size returns a number of bytes as readable text.
func size(n int64) string {
	v, unit := float64(n), 0
	for v >= 10240 && unit < 4 {
		v, unit = v/1024, unit+1
	}
	if unit == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", v, [...]string{"B", "KiB", "MiB", "GiB", "TiB"}[unit])
}
