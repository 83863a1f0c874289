package chrome

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
)

// windowThreads is the number of the first thread that stands for a window and an
// origin; real threads have smaller numbers.
const windowThreads = 1 << 24

// WriteFile writes the file for Perfetto to path. It writes the whole file or none.
func (r *Recording) WriteFile(path string) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	err = r.Write(f)
	if e := f.Chmod(0o644); err == nil {
		err = e
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// writer writes events.
type writer struct {
	*bufio.Writer
	more    bool
	lanes   map[lane]int
	flow    int
	moved   map[int]*[2]int64 // bytes by rank: of messages, of one-sided operations
	scratch []byte
}

// lane identifies the thread of the file that shows the accesses of one origin to a
// rank's part of a window.
type lane struct {
	rank   int
	window int64
	origin int
}

// Write writes the file for Perfetto.
func (r *Recording) Write(to io.Writer) error {
	w := &writer{Writer: bufio.NewWriterSize(to, 1<<18), lanes: map[lane]int{}, moved: map[int]*[2]int64{}}
	other, err := json.Marshal(r.other())
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "{\"displayTimeUnit\":\"ns\",\n\"otherData\":%s,\n\"traceEvents\":[", other)
	for rank := range r.Ranks {
		w.name("process_name", rank, 0, fmt.Sprintf("rank %d", rank))
		w.begin("M", "process_sort_index", rank, 0)
		fmt.Fprintf(w, `,"args":{"sort_index":%d}}`, rank)
		for i, t := range r.threads[rank] {
			name := "calls"
			if i > 0 {
				name = fmt.Sprintf("calls of thread %d", t)
			}
			w.name("thread_name", rank, int(t), name)
		}
	}
	for i := range r.calls {
		w.call(&r.calls[i])
	}
	for i := range r.messages {
		w.message(&r.messages[i])
	}
	w.WriteString("\n]}\n")
	return w.Flush()
}

// other returns otherData.
func (r *Recording) other() map[string]any {
	windows := map[string]any{}
	for _, w := range r.windows {
		windows[strconv.FormatInt(w.id, 10)] = map[string]any{"flavor": w.flavor, "ranks": w.world}
	}
	dropped := map[string]uint64{}
	for rank, n := range r.dropped {
		dropped[strconv.Itoa(rank)] = n
	}
	return map[string]any{"producer": "gormapy", "ranks": r.Ranks, "absent": append([]int{}, r.absent...), "dropped": dropped,
		"windows": windows, "start_ns": r.start, "end_ns": r.end, "summary": r.Summary()}
}

func (w *writer) begin(phase, name string, pid, tid int) {
	if w.more {
		w.WriteByte(',')
	}
	w.more = true
	w.WriteString("\n{\"ph\":\"")
	w.WriteString(phase)
	w.WriteString("\",\"name\":\"")
	w.WriteString(name) // gormapy defines all names: they need no escapes
	w.WriteString("\",\"pid\":")
	w.number(int64(pid))
	w.WriteString(",\"tid\":")
	w.number(int64(tid))
}

func (w *writer) number(v int64) {
	w.scratch = strconv.AppendInt(w.scratch[:0], v, 10)
	w.Writer.Write(w.scratch)
}

// micros writes nanoseconds as microseconds.
func (w *writer) micros(key string, ns int64) {
	w.WriteString(",\"" + key + "\":")
	w.number(ns / 1000)
	if rest := ns % 1000; rest != 0 {
		fmt.Fprintf(w, ".%03d", rest)
	}
}

func (w *writer) arg(key string, v int64) {
	w.WriteString(",\"" + key + "\":")
	w.number(v)
}

func (w *writer) name(what string, pid, tid int, name string) {
	w.begin("M", what, pid, tid)
	fmt.Fprintf(w, `,"args":{"name":"%s"}}`, name)
}

// count adds bytes to those that rank has moved, and writes the sums.
func (w *writer) count(rank, which int, bytes, at int64) {
	m := w.moved[rank]
	if m == nil {
		m = new([2]int64)
		w.moved[rank] = m
	}
	m[which] += bytes
	w.begin("C", "bytes moved", rank, 0)
	w.micros("ts", at)
	fmt.Fprintf(w, `,"args":{"messages":%d,"one-sided":%d}}`, m[0], m[1])
}

func (w *writer) call(c *call) {
	w.begin("X", c.name, c.rank, int(c.thread))
	w.WriteString(",\"cat\":\"" + c.category + "\"")
	w.micros("ts", c.begin)
	w.micros("dur", c.end-c.begin)
	w.WriteString(",\"args\":{\"wait_us\":")
	fmt.Fprintf(w, "%d.%03d", c.wait/1000, c.wait%1000)
	if c.waitsFor >= 0 {
		w.arg("waits_for", int64(c.waitsFor))
	}
	if c.comm >= 0 {
		key := "comm"
		if c.win != nil {
			key = "window"
		}
		w.arg(key, c.comm)
	}
	if c.peer > -3 {
		w.arg("peer", int64(c.peer))
	}
	if c.tag >= 0 {
		w.arg("tag", int64(c.tag))
	}
	w.arg("bytes", c.bytes)
	target := -1
	if c.category == "one-sided" {
		w.arg("disp", c.disp)
		w.arg("span", c.span)
		w.arg("op", int64(max(c.op, 0)))
		if c.win != nil && c.peer >= 0 && c.peer < len(c.win.world) {
			target = c.win.world[c.peer]
			w.arg("target", int64(target))
		}
	}
	if !c.finished {
		w.WriteString(",\"unfinished\":true")
	}
	if c.failed {
		w.WriteString(",\"failed\":true")
	}
	w.WriteString("}}")
	if target >= 0 && !c.failed {
		w.access(c, target)
		w.count(c.rank, 1, c.bytes, c.begin)
	}
}

// access shows a one-sided operation at its target.
func (w *writer) access(c *call, target int) {
	key := lane{target, c.win.id, c.rank}
	tid, known := w.lanes[key]
	if !known {
		tid = windowThreads + len(w.lanes)
		w.lanes[key] = tid
		w.name("thread_name", target, tid, fmt.Sprintf("window %d, from rank %d", c.win.id, c.rank))
	}
	w.begin("X", c.name, target, tid)
	w.WriteString(",\"cat\":\"access\"")
	w.micros("ts", c.begin)
	w.micros("dur", c.end-c.begin)
	fmt.Fprintf(w, `,"args":{"window":%d,"origin":%d,"disp":%d,"span":%d,"bytes":%d}}`, c.win.id, c.rank, c.disp, c.span, c.bytes)
	middle := c.begin + (c.end-c.begin)/2
	w.arrow("s", "one-sided", "operation", c.rank, int(c.thread), c.begin)
	w.WriteByte('}')
	w.arrow("f", "one-sided", "operation", target, tid, middle)
	w.WriteString(",\"bp\":\"e\"}")
	w.flow++
}

// arrow writes one end of an arrow, without the brace that ends it.
func (w *writer) arrow(phase, category, name string, pid, tid int, at int64) {
	w.begin(phase, name, pid, tid)
	w.WriteString(",\"cat\":\"" + category + "\"")
	w.arg("id", int64(w.flow))
	w.micros("ts", at)
}

func (w *writer) message(m *message) {
	args := fmt.Sprintf(`,"args":{"source":%d,"dest":%d,"tag":%d,"comm":%d,"bytes":%d}}`, m.source, m.dest, m.tag, m.comm, m.bytes)
	if m.sent >= 0 {
		w.count(m.source, 0, m.bytes, m.sent)
	}
	switch {
	case m.sent >= 0 && m.received >= 0:
		w.arrow("s", "message", "message", m.source, int(m.from), m.sent)
		w.WriteString(args)
		w.arrow("f", "message", "message", m.dest, int(m.to), m.received)
		w.WriteString(",\"bp\":\"e\"" + args)
		w.flow++
	case m.sent >= 0:
		w.begin("i", "not received", m.source, int(m.from))
		w.micros("ts", m.sent)
		w.WriteString(",\"cat\":\"message\",\"s\":\"t\"" + args)
	default:
		w.begin("i", "sender not recorded", m.dest, int(m.to))
		w.micros("ts", m.received)
		w.WriteString(",\"cat\":\"message\",\"s\":\"t\"" + args)
	}
}
