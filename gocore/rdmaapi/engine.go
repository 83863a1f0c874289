package rdmaapi

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"time"
	"unsafe"

	"gormapy/gocore/fabric"
	"gormapy/gocore/rdmaapi/backend"
	"gormapy/gocore/rdmaapi/transfer"
)

// engineOptions are the options of an engine, as Python passes them.
type engineOptions struct {
	Name     string  `json:"name"`
	Backend  string  `json:"backend"`
	Device   string  `json:"device"`
	Host     string  `json:"host"`
	Port     int     `json:"port"`
	Lanes    int     `json:"qp_per_transfer"`
	Batch    int     `json:"post_batch_size"`
	MaxSend  int     `json:"max_send_wr"`
	Polling  bool    `json:"polling"`
	Notify   bool    `json:"enable_notification"`
	Notices  int     `json:"notif_per_qp"`
	Chunking bool    `json:"enable_transfer_chunking"`
	Chunk    int64   `json:"chunk_bytes"`
	Chunks   int64   `json:"max_chunks_per_transfer"`
	Timeout  float64 `json:"connect_timeout"` // seconds
}

// engineCard is the descriptor of an engine.
type engineCard struct {
	Name     string `json:"name"`
	ID       string `json:"id"`     // hexadecimal
	Secret   string `json:"secret"` // hexadecimal
	Backend  string `json:"backend"`
	Address  string `json:"address"`
	Hostname string `json:"hostname"`
	PID      int    `json:"pid"`
	Device   string `json:"device"`
}

func parse(text, op string, v any) *Error {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return refuse("EINVAL", op, nil, "the options are malformed: %v", err)
	}
	return nil
}

// EngineOpen makes an engine, with options as a JSON object.
func EngineOpen(options string) (h int64) {
	const op = "open Engine"
	defer contain(op, &h)
	var o engineOptions
	if e := parse(options, op, &o); e != nil {
		return code(e)
	}
	if o.Batch == 0 || o.Batch < -1 {
		return code(refuse("EINVAL", op, nil, "post_batch_size is %d; it must be at least 1, or -1 for no limit", o.Batch))
	}
	if !(o.Timeout > 0 && o.Timeout <= 1e6) {
		return code(refuse("EINVAL", op, nil, "connect_timeout is %v; it must be more than 0 and at most a million seconds", o.Timeout))
	}
	d, e := openDevice(o.Backend, o.Device, op)
	if e != nil {
		return code(e)
	}
	c := transfer.Config{
		Name: o.Name, Backend: d.backend, Host: o.Host, Port: o.Port, Lanes: o.Lanes, PostBatch: max(o.Batch, 0), MaxSend: o.MaxSend, Polling: o.Polling,
		Notify: o.Notify, Notices: o.Notices, MaxChunks: o.Chunks, ConnectTimeout: time.Duration(o.Timeout * float64(time.Second)),
	}
	if o.Chunking {
		if c.Chunk = o.Chunk; c.Chunk < 1 {
			d.ctx.Close() //nolint:errcheck // there is another error to report
			return code(refuse("EINVAL", op, nil, "chunk_bytes is %d; it must be at least 1", o.Chunk))
		}
	}
	if c.Host == "" {
		c.Host = "127.0.0.1"
		if ports := d.ctx.Device().Ports; d.backend == "tcp" && len(ports) > 0 && len(ports[0].Addresses) > 0 {
			c.Host = ports[0].Addresses[0]
		}
	}
	engine, err := transfer.Open(d.ctx, c)
	if err != nil {
		return code(from(err, op, nil))
	}
	n, e := add("Engine", engine, engine.Close, op)
	if e != nil {
		engine.Close() //nolint:errcheck // there is another error to report
		return code(e)
	}
	return n.handle
}

// EngineInfo returns the descriptor of an engine, a JSON object; "" if it is closed.
func EngineInfo(h int64) string {
	e, _, err := get[*transfer.Engine](h, "Engine", "desc")
	if err != nil {
		return ""
	}
	c := e.Card()
	host, _ := os.Hostname() //nolint:errcheck // an unknown name is empty
	return text(engineCard{c.Name, hex.EncodeToString(c.ID[:]), hex.EncodeToString(c.Secret[:]), c.Backend, c.Address, host, os.Getpid(), e.Device()})
}

// EngineAdd registers another engine by its descriptor, a JSON object.
func EngineAdd(h int64, descriptor string) (c int64) {
	const op = "register_remote"
	defer contain(op, &c)
	e, _, err := get[*transfer.Engine](h, "Engine", op)
	if err != nil {
		return code(err)
	}
	var d engineCard
	if err := parse(descriptor, op, &d); err != nil {
		return code(err)
	}
	card := transfer.Card{Name: d.Name, Backend: d.Backend, Address: d.Address}
	if !unhex(card.ID[:], d.ID) || !unhex(card.Secret[:], d.Secret) {
		return code(refuse("EINVAL", op, nil, "the descriptor has no valid id or secret"))
	}
	return code(from(e.AddRemote(card), op, nil))
}

func unhex(to []byte, from string) bool {
	b, err := hex.DecodeString(from)
	return err == nil && copy(to, b) == len(to) && len(b) == len(to)
}

// EngineRemove deregisters another engine and ends all transfers and connections
// with it.
func EngineRemove(h int64, name string) (c int64) {
	const op = "deregister_remote"
	defer contain(op, &c)
	e, _, err := get[*transfer.Engine](h, "Engine", op)
	if err != nil {
		return code(err)
	}
	return code(from(e.RemoveRemote(name), op, nil))
}

// EngineRegister registers memory and returns its number.
func EngineRegister(h, addr, n, writable int64) (c int64) {
	const op = "register_memory"
	defer contain(op, &c)
	e, _, err := get[*transfer.Engine](h, "Engine", op)
	if err != nil {
		return code(err)
	}
	access := backend.RemoteRead
	if writable != 0 {
		access |= backend.LocalWrite | backend.RemoteWrite
	}
	r, failed := e.Register(fabric.Pointer(uint64(addr)), n, access)
	if failed != nil {
		return code(from(failed, op, sizes{"length": n}))
	}
	return int64(r.ID)
}

// EngineMemory returns "addr rkey access" of registered memory; "" if it is not
// registered.
func EngineMemory(h, id int64) string {
	e, _, err := get[*transfer.Engine](h, "Engine", "register_memory")
	if err != nil {
		return ""
	}
	r := e.Region(uint64(id))
	if r == nil {
		return ""
	}
	return fmt.Sprintf("%d %d %d", r.Addr(), r.RKey(), r.Access())
}

// EngineDeregister ends the registration of memory. EBUSY means that the memory
// must be kept.
func EngineDeregister(h, id int64) (c int64) {
	const op = "deregister_memory"
	defer contain(op, &c)
	e, _, err := get[*transfer.Engine](h, "Engine", op)
	if err != nil {
		return code(err)
	}
	return code(from(e.Deregister(uint64(id)), op, nil))
}

// EngineSession pairs local memory with memory of another engine, which is given by
// the engine's name and id and the memory's address, key, size and access.
func EngineSession(h, local int64, name, id string, addr, rkey, n, access int64) (s int64) {
	const op = "create_session"
	defer contain(op, &s)
	e, node, err := get[*transfer.Engine](h, "Engine", op)
	if err != nil {
		return code(err)
	}
	var from16 [16]byte
	if !unhex(from16[:], id) {
		return code(refuse("EINVAL", op, nil, "the descriptor has no valid id"))
	}
	session, failed := e.Session(uint64(local), name, from16, transfer.Memory{Addr: uint64(addr), RKey: uint64(rkey), N: n, Access: backend.Access(access)})
	if failed != nil {
		return code(from(failed, op, nil))
	}
	made, err := add("Session", session, func() error { return nil }, op, node)
	if err != nil {
		return code(err)
	}
	return made.handle
}

// EngineSessionAlive returns 1 if both sides of a session are registered, so that
// transfers can be tried, else 0.
func EngineSessionAlive(h int64) int64 {
	s, _, err := get[*transfer.Session](h, "Session", "alive")
	if err != nil || !s.Alive() {
		return 0
	}
	return 1
}

// maxEntries is the largest number of entries of one batch.
const maxEntries = 1 << 22

func transferOp(read int64) backend.Op {
	if read != 0 {
		return backend.OpRead
	}
	return backend.OpWrite
}

// EngineTransfer begins a transfer and returns the number of its status.
func EngineTransfer(session, read, local, remote, n, uid int64) (h int64) {
	const op = "transfer"
	defer contain(op, &h)
	s, _, err := get[*transfer.Session](session, "Session", op)
	if err != nil {
		return code(err)
	}
	one := [1]transfer.Entry{{Local: local, Remote: remote, N: n}}
	return keepStatus(s.Transfer(transferOp(read), one[:], uid))
}

// EngineBatch begins a transfer of n entries at addr, each one local offset, remote
// offset and length.
func EngineBatch(session, read, addr, n, uid int64) (h int64) {
	const op = "transfer"
	defer contain(op, &h)
	s, _, err := get[*transfer.Session](session, "Session", op)
	if err == nil {
		err = limit(op, "the number of entries", n, 1, maxEntries)
	}
	if err != nil {
		return code(err)
	}
	entries := unsafe.Slice((*transfer.Entry)(fabric.Pointer(uint64(addr))), int(n))
	return keepStatus(s.Transfer(transferOp(read), entries, uid))
}

// EngineArrived takes the arrival of the transfer uid of another engine. It waits up
// to us microseconds and returns 1 if there was one, else 0.
func EngineArrived(h int64, name string, uid, us int64) (c int64) {
	const op = "pop_inbound"
	defer contain(op, &c)
	e, _, err := get[*transfer.Engine](h, "Engine", op)
	if err != nil {
		return code(err)
	}
	there, failed := e.Arrived(name, uint64(uid), min(time.Duration(max(us, 0))*time.Microsecond, longestSlice))
	if failed != nil {
		return code(from(failed, op, nil))
	}
	if there {
		return 1
	}
	return 0
}

// EngineUID returns a new number for a transfer.
func EngineUID(h int64) (c int64) {
	const op = "allocate_transfer_uid"
	defer contain(op, &c)
	e, _, err := get[*transfer.Engine](h, "Engine", op)
	if err != nil {
		return code(err)
	}
	return int64(e.UID())
}
