package pmi

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
)

const (
	// maxLine is the longest put line, without its end, that every server
	// keeps whole.
	maxLine = 1023
	// maxKey is the longest key; the parts of a long value have longer ones.
	maxKey = 56
	// splitMark begins the value of a key whose real value is in parts.
	splitMark = "~"
)

var (
	// ErrNoServer is returned by Connect if the environment names no server.
	ErrNoServer = errors.New("no PMI-1 server: neither PMI_FD nor PMI_PORT and PMI_ID are set")
	// ErrNotFound is returned by Get for a key that no rank has put.
	ErrNotFound = errors.New("no such key")
)

// Client is one rank's connection to the process manager. It is safe for concurrent use
// by multiple goroutines; a call waits for the one before, except for Abort, which never
// waits.
type Client struct {
	rank, size int
	space      string // name of the key-value space

	mu   sync.Mutex // one request and its answer at a time
	wire *wire
}

// Connect joins the job that the environment names: PMI_FD with PMI_RANK and
// PMI_SIZE, or PMI_PORT with PMI_ID.
func Connect() (*Client, error) {
	c := &Client{}
	var err error
	switch {
	case os.Getenv("PMI_FD") != "":
		if c.rank, err = envNumber("PMI_RANK"); err != nil {
			return nil, err
		}
		if c.size, err = envNumber("PMI_SIZE"); err != nil {
			return nil, err
		}
		c.wire, err = inherit(os.Getenv("PMI_FD"))
	case os.Getenv("PMI_PORT") != "" && os.Getenv("PMI_ID") != "":
		if c.wire, err = dial(os.Getenv("PMI_PORT")); err == nil {
			err = c.greet(os.Getenv("PMI_ID"))
		}
	default:
		return nil, ErrNoServer
	}
	if err == nil {
		err = c.initialise()
	}
	if err == nil && (c.size < 1 || c.rank < 0 || c.rank >= c.size) {
		err = fmt.Errorf("the process manager says that this is rank %d of %d", c.rank, c.size)
	}
	if err != nil {
		if c.wire != nil {
			c.wire.close()
		}
		return nil, err
	}
	return c, nil
}

func envNumber(name string) (int, error) {
	n, err := strconv.Atoi(os.Getenv(name))
	if err != nil {
		return 0, fmt.Errorf("PMI_FD is set but %s is %q, not a number", name, os.Getenv(name))
	}
	return n, nil
}

// greet sends, over TCP, the id of this process, and receives its rank.
func (c *Client) greet(id string) error {
	if _, err := c.ask("cmd=initack pmiid="+id, "initack"); err != nil {
		return err
	}
	for got := 0; got < 3; got++ { // size, rank, debug, in any order
		line, err := c.wire.receive()
		if err != nil {
			return fmt.Errorf("PMI-1 initack: %w", err)
		}
		w := parse(line)
		if w["cmd"] != "set" {
			return fmt.Errorf("PMI-1 initack: expected cmd=set, got %q", line)
		}
		if _, ok := w["size"]; ok {
			c.size, err = w.number("size")
		} else if _, ok := w["rank"]; ok {
			c.rank, err = w.number("rank")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *Client) initialise() error {
	w, err := c.ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init")
	if err != nil {
		return err
	}
	if v := w["pmi_version"]; v != "1" {
		return fmt.Errorf("the process manager speaks PMI version %q, not 1", v)
	}
	if w, err = c.ask("cmd=get_my_kvsname", "my_kvsname"); err != nil {
		return err
	}
	if c.space = w["kvsname"]; c.space == "" {
		return errors.New("the process manager gave no name of a key-value space")
	}
	return nil
}

// ask sends a request and returns its answer, which must be the named one and report no
// error.
func (c *Client) ask(request, answer string) (words, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name, _, _ := strings.Cut(strings.TrimPrefix(request, "cmd="), " ")
	if err := c.wire.send(request); err != nil {
		return nil, fmt.Errorf("PMI-1 %s: %w", name, err)
	}
	line, err := c.wire.receive()
	if err != nil {
		return nil, fmt.Errorf("PMI-1 %s: %w", name, err)
	}
	w := parse(line)
	if w["cmd"] != answer {
		return nil, fmt.Errorf("PMI-1 %s: expected the answer cmd=%s, got %q", name, answer, line)
	}
	// Some answers have no rc.
	if rc, ok := w["rc"]; ok && rc != "0" {
		return w, &refusal{name, line}
	}
	return w, nil
}

// refusal is an answer with an error code.
type refusal struct{ request, answer string }

func (r *refusal) Error() string {
	return fmt.Sprintf("PMI-1 %s: the process manager refused (%s)", r.request, r.answer)
}

// Rank returns this process's rank.
func (c *Client) Rank() int { return c.rank }

// Size returns the number of ranks of the job.
func (c *Client) Size() int { return c.size }

// Program returns the number, on the launcher's command line, of the program that this
// process runs (MPI_APPNUM), 0 if the process manager does not know it.
func (c *Client) Program() (int, error) {
	w, err := c.ask("cmd=get_appnum", "appnum")
	if errors.As(err, new(*refusal)) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return w.number("appnum")
}

// Put stores value under key for all ranks; they can read it after a Barrier. A key may
// be put only once. Key and value must be printable, without space or backslash (encode
// binary data as hexadecimal or base64). The value must not be empty; it may have any
// length.
func (c *Client) Put(key, value string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	if err := check("value", value); err != nil {
		return fmt.Errorf("put %s: %w", key, err)
	}
	room := maxLine - len(c.putLine(key+".9999", ""))
	if room < 1 {
		return fmt.Errorf("put %s: no room for a value beside the key", key)
	}
	if len(value) <= room && !strings.HasPrefix(value, splitMark) {
		return c.put(key, value)
	}
	parts := (len(value) + room - 1) / room
	if parts > 9999 {
		return fmt.Errorf("put %s: a value of %d bytes is too long, at most %d are possible", key, len(value), 9999*room)
	}
	for i := range parts {
		if err := c.put(key+"."+strconv.Itoa(i), value[i*room:min(len(value), (i+1)*room)]); err != nil {
			return err
		}
	}
	return c.put(key, splitMark+strconv.Itoa(parts))
}

func (c *Client) putLine(key, value string) string {
	return "cmd=put kvsname=" + c.space + " key=" + key + " value=" + value
}

func (c *Client) put(key, value string) error {
	_, err := c.ask(c.putLine(key, value), "put_result")
	return err
}

// Get returns the value that a rank put under key before the last Barrier.
func (c *Client) Get(key string) (string, error) {
	if err := checkKey(key); err != nil {
		return "", err
	}
	value, err := c.get(key)
	if err != nil || !strings.HasPrefix(value, splitMark) {
		return value, err
	}
	parts, err := strconv.Atoi(value[len(splitMark):])
	if err != nil {
		return "", fmt.Errorf("get %s: %q was not put by this client", key, value)
	}
	var all strings.Builder
	for i := range parts {
		part, err := c.get(key + "." + strconv.Itoa(i))
		if err != nil {
			return "", err
		}
		all.WriteString(part)
	}
	return all.String(), nil
}

func (c *Client) get(key string) (string, error) {
	w, err := c.ask("cmd=get kvsname="+c.space+" key="+key, "get_result")
	if errors.As(err, new(*refusal)) {
		return "", fmt.Errorf("get %s: %w", key, ErrNotFound)
	}
	if err != nil {
		return "", err
	}
	value, ok := w["value"]
	if !ok {
		return "", fmt.Errorf("get %s: the process manager's answer has no value", key)
	}
	return value, nil
}

// Barrier waits until all ranks have called it. Values that were put before can be read
// after it.
func (c *Client) Barrier() error {
	_, err := c.ask("cmd=barrier_in", "barrier_out")
	return err
}

// Abort asks the process manager to end all ranks with the exit status code.
// There is no answer: this process is one of them.
func (c *Client) Abort(code int) error {
	return c.wire.send("cmd=abort exitcode=" + strconv.Itoa(code))
}

// Finalize reports to the process manager that this rank ends successfully, and closes
// the connection. The client can't be used afterwards.
func (c *Client) Finalize() error {
	_, err := c.ask("cmd=finalize", "finalize_ack")
	c.wire.close()
	return err
}

func checkKey(key string) error {
	if err := check("key", key); err != nil {
		return fmt.Errorf("key %q: %w", key, err)
	}
	if len(key) > maxKey {
		return fmt.Errorf("key %q has %d bytes, at most %d are possible", key, len(key), maxKey)
	}
	if strings.HasPrefix(key, "PMI_") {
		return fmt.Errorf("key %q: names that begin with PMI_ belong to the process manager", key)
	}
	return nil
}

// check returns an error for text that some server does not keep unchanged.
func check(what, text string) error {
	if text == "" {
		return fmt.Errorf("an empty %s would end the job", what)
	}
	for i := range len(text) {
		if b := text[i]; b <= ' ' || b == '\\' || b == 0x7f {
			return fmt.Errorf("the %s contains %q, which process managers don't keep: encode it, for example as hexadecimal", what, b)
		}
	}
	return nil
}
