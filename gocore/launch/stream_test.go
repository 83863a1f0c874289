package launch

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// plumbing is n streams that lead to one sink, whose output is collected.
type plumbing struct {
	ends    []*os.File // the ends that the ranks write to
	streams []*stream
	sink    *sink
	out     *os.File

	mu  sync.Mutex
	got bytes.Buffer
	eof chan struct{}
}

func newPlumbing(t *testing.T, n int, tagged bool, change ...func(*delays)) *plumbing {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	p := &plumbing{out: w, eof: make(chan struct{})}
	p.sink = newSink(int(w.Fd()), func(err error) { t.Errorf("sink broken: %v", err) })
	for i := range n {
		in, end, err := pipe()
		require.NoError(t, err)
		p.ends = append(p.ends, os.NewFile(uintptr(end), "end"))
		s := newStream(in, p.sink, i, tagged)
		for _, f := range change {
			f(&s.delays)
		}
		p.streams = append(p.streams, s)
		go s.run()
	}
	go func() {
		defer close(p.eof)
		buf := make([]byte, 32<<10)
		for {
			n, err := r.Read(buf)
			p.mu.Lock()
			p.got.Write(buf[:n])
			p.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return p
}

func (p *plumbing) soFar() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.got.String()
}

// reaches waits until the output is want.
func (p *plumbing) reaches(t *testing.T, want string) {
	t.Helper()
	assert.Eventually(t, func() bool { return p.soFar() == want }, time.Minute, 5*time.Millisecond)
}

// finish closes all ends and returns all output.
func (p *plumbing) finish(t *testing.T) string {
	t.Helper()
	for _, e := range p.ends {
		e.Close()
	}
	for _, s := range p.streams {
		select {
		case <-s.done:
		case <-time.After(time.Minute):
			t.Fatal("a stream does not end")
		}
	}
	p.out.Close()
	<-p.eof
	return p.soFar()
}

func TestStreamTagsLines(t *testing.T) {
	p := newPlumbing(t, 1, true)
	fmt.Fprint(p.ends[0], "one\ntwo\n\nrest")
	p.reaches(t, "[0] one\n[0] two\n[0] \n")
	time.Sleep(3 * usualDelays.prompt)
	assert.Equal(t, "[0] one\n[0] two\n[0] \n", p.soFar(), "a part of a line is shown")
	fmt.Fprint(p.ends[0], " of it\nlast")
	assert.Equal(t, "[0] one\n[0] two\n[0] \n[0] rest of it\n[0] last\n", p.finish(t))
}

func TestStreamPassesPrompts(t *testing.T) {
	p := newPlumbing(t, 1, false)
	fmt.Fprint(p.ends[0], "line\nName? ")
	p.reaches(t, "line\nName? ")
	fmt.Fprint(p.ends[0], "thanks\x00\xff")
	assert.Equal(t, "line\nName? thanks\x00\xff", p.finish(t))
}

func TestStreamKeepsRestOfBlock(t *testing.T) {
	p := newPlumbing(t, 2, false, func(d *delays) { d.block = time.Minute })
	block := bytes.Repeat([]byte("0123456789abcde\n"), 512)
	_, err := p.ends[0].Write(block[:len(block)-8]) // as a program that buffers its output does
	require.NoError(t, err)
	p.reaches(t, string(block[:len(block)-16]))
	time.Sleep(2 * usualDelays.prompt)
	fmt.Fprint(p.ends[1], "from another\n")
	p.reaches(t, string(block[:len(block)-16])+"from another\n")
	_, err = p.ends[0].Write(block[len(block)-8:])
	require.NoError(t, err)
	want := string(block[:len(block)-16]) + "from another\n" + string(block[len(block)-16:])
	assert.Equal(t, want, p.finish(t))
}

func TestStreamBoundsDots(t *testing.T) {
	p := newPlumbing(t, 1, false)
	stop := time.Now().Add(30 * time.Second)
	seen := false
	for time.Now().Before(stop) && !seen {
		fmt.Fprint(p.ends[0], ".")
		time.Sleep(usualDelays.prompt / 5)
		seen = len(p.soFar()) > 0
	}
	assert.True(t, seen, "a line that grows all the time is never shown")
	p.finish(t)
}

// TestStreamLongLine checks that a line of any length stays in one piece while
// others write.
func TestStreamLongLine(t *testing.T) {
	for _, tagged := range []bool{false, true} {
		p := newPlumbing(t, 2, tagged, func(d *delays) { d.prompt, d.dots = time.Minute, time.Minute })
		long := bytes.Repeat([]byte("x"), 3*maxLine+17)
		var wg sync.WaitGroup
		wg.Add(2)
		go func() {
			defer wg.Done()
			_, _ = p.ends[0].Write(append(long, '\n'))
		}()
		go func() {
			defer wg.Done()
			for i := range 2000 {
				fmt.Fprintf(p.ends[1], "short %d\n", i)
			}
		}()
		wg.Wait()
		out := p.finish(t)
		tag := map[bool][2]string{false: {"", ""}, true: {"[0] ", "[1] "}}[tagged]
		var want1 bytes.Buffer
		for i := range 2000 {
			fmt.Fprintf(&want1, "%sshort %d\n", tag[1], i)
		}
		at := bytes.Index([]byte(out), []byte(tag[0]+"xx"))
		require.GreaterOrEqual(t, at, 0)
		n := len(tag[0]) + len(long) + 1
		require.True(t, len(out) >= at+n && out[at:at+n] == tag[0]+string(long)+"\n", "the long line is torn")
		assert.Equal(t, want1.String(), out[:at]+out[at+n:])
	}
}

// TestStreamLongLineStalls checks that a rank that stops in the middle of an
// over-long line does not keep the others from writing.
func TestStreamLongLineStalls(t *testing.T) {
	for _, tagged := range []bool{false, true} {
		p := newPlumbing(t, 2, tagged, func(d *delays) { d.prompt = 2 * time.Second })
		_, err := p.ends[0].Write(bytes.Repeat([]byte("x"), maxLine+readSize))
		require.NoError(t, err)
		require.Eventually(t, func() bool { return len(p.soFar()) > 0 }, time.Minute, time.Millisecond)
		fmt.Fprint(p.ends[1], "other\n")
		assert.Eventually(t, func() bool { return bytes.HasSuffix([]byte(p.soFar()), []byte("other\n")) }, time.Minute, 5*time.Millisecond)
		fmt.Fprint(p.ends[0], "tail\n")
		out := p.finish(t)
		want := "xother\ntail\n"
		if tagged {
			want = "x\n[1] other\n[0] tail\n"
		}
		assert.Equal(t, want, out[max(0, len(out)-len(want)):])
	}
}

// TestStreamRandom writes random lines in random pieces from several ranks and
// compares what arrives, rank by rank.
func TestStreamRandom(t *testing.T) {
	const ranks = 6
	for seed := range uint64(8) {
		p := newPlumbing(t, ranks, true)
		sent := make([]bytes.Buffer, ranks)
		var wg sync.WaitGroup
		for i := range ranks {
			wg.Add(1)
			go func() {
				defer wg.Done()
				rng := rand.New(rand.NewPCG(seed, uint64(i)))
				for range 300 {
					n := rng.IntN(200)
					if rng.IntN(40) == 0 {
						n = rng.IntN(100_000)
					}
					line := make([]byte, n+1)
					for k := range line {
						line[k] = byte(rng.IntN(256))
						if line[k] == '\n' {
							line[k] = 0
						}
					}
					line[n] = '\n'
					sent[i].Write(line)
					for len(line) > 0 {
						k := 1 + rng.IntN(len(line))
						_, _ = p.ends[i].Write(line[:k])
						line = line[k:]
					}
				}
			}()
		}
		wg.Wait()
		got := make([]bytes.Buffer, ranks)
		for _, line := range bytes.SplitAfter([]byte(p.finish(t)), []byte("\n")) {
			if len(line) == 0 {
				continue
			}
			require.True(t, len(line) > 4 && line[0] == '[' && line[1] >= '0' && line[1] < '0'+ranks && string(line[2:4]) == "] ", "%q", line[:min(len(line), 20)])
			got[line[1]-'0'].Write(line[4:])
		}
		for i := range ranks {
			require.True(t, bytes.Equal(sent[i].Bytes(), got[i].Bytes()), "seed %d rank %d", seed, i)
		}
	}
}

func TestStreamClose(t *testing.T) {
	p := newPlumbing(t, 1, true)
	fmt.Fprint(p.ends[0], "half")
	time.Sleep(10 * time.Millisecond)
	p.streams[0].close() // the other end stays open
	select {
	case <-p.streams[0].done:
	case <-time.After(time.Minute):
		t.Fatal("close does not end the stream")
	}
	assert.Equal(t, "[0] half\n", p.finish(t))
}

func TestSinkBroken(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer w.Close()
	r.Close()
	var broken []error
	s := newSink(int(w.Fd()), func(err error) { broken = append(broken, err) })
	s.write(&stream{}, []byte("a\n"), false)
	s.write(&stream{}, []byte("b\n"), false)
	assert.Equal(t, []error{unix.EPIPE}, broken, "said once")
}

func TestSinkNonBlocking(t *testing.T) {
	in, end, err := pipe() // both ends non-blocking, as some parents leave them
	require.NoError(t, err)
	require.NoError(t, unix.SetNonblock(end, true))
	s := newSink(end, func(err error) { t.Errorf("sink broken: %v", err) })
	want := bytes.Repeat([]byte("0123456789\n"), 50_000)
	go func() {
		s.write(&stream{}, want, false)
		unix.Close(end)
	}()
	got, err := io.ReadAll(os.NewFile(uintptr(in), "pipe"))
	require.NoError(t, err)
	assert.True(t, bytes.Equal(want, got))
}

func TestSinkMessage(t *testing.T) {
	p := newPlumbing(t, 1, false)
	p.sink.write(&stream{}, []byte("half a line"), false)
	p.sink.message("said")
	p.sink.message("again")
	assert.Equal(t, "half a line\nsaid\nagain\n", p.finish(t))
}

// TestLabel checks that after label each line has its rank, also when the stream, or
// another one, has stopped in the middle of a line.
func TestLabel(t *testing.T) {
	p := newPlumbing(t, 2, false)
	write := func(i int, text string) {
		_, err := p.ends[i].WriteString(text)
		require.NoError(t, err)
	}
	reaches := func(want string) {
		t.Helper()
		assert.Eventually(t, func() bool { return p.soFar() == want }, 20*time.Second, time.Millisecond, want)
	}
	write(0, "before\nprompt> ")
	reaches("before\nprompt> ")
	p.streams[1].label()
	write(1, "stack\n")
	reaches("before\nprompt> \n[1] stack\n")
	write(0, "un")
	reaches("before\nprompt> \n[1] stack\nun")
	p.streams[0].label()
	write(0, "tagged\nline\n")
	reaches("before\nprompt> \n[1] stack\nun\n[0] tagged\n[0] line\n")
	for _, end := range p.ends {
		end.Close()
	}
}
