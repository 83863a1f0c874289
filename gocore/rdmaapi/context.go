package rdmaapi

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"gormapy/gocore/rdmaapi/backend"
	"gormapy/gocore/rdmaapi/ofi"
	"gormapy/gocore/rdmaapi/sockets"
	"gormapy/gocore/rdmaapi/soft"
	"gormapy/gocore/rdmaapi/verbs"
	"gormapy/gocore/sys"
)

// backends are all back ends, in the order in which Open searches for a device.
var backends = []backend.Backend{verbs.Backend{}, soft.TCP, soft.SHM, ofi.Backend{}}

// found lists the devices of a back end, or has the reason why there are none.
type found struct {
	Backend string           `json:"backend"`
	Problem string           `json:"problem"`
	Devices []backend.Device `json:"devices"`
}

// Devices returns the back ends with their devices, a JSON list.
func Devices() string {
	all := []found{}
	for _, b := range backends {
		f := found{Backend: b.Name(), Devices: []backend.Device{}}
		devices, err := b.Devices()
		if err != nil {
			f.Problem = err.Error()
		} else if len(devices) > 0 {
			f.Devices = devices
		} else {
			f.Problem = "no devices"
		}
		all = append(all, f)
	}
	return text(all)
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return "null"
	}
	return string(b)
}

// BeforeFork has no connection begin until AfterFork. It returns the number of sockets.
func BeforeFork() int { return sockets.BeforeFork() }

// Sockets returns the descriptors that a forked child has to close.
func Sockets() []int32 { return sockets.Open() }

// AfterFork is to be called after each BeforeFork, in the parent.
func AfterFork() { sockets.AfterFork() }

// device is an open context.
type device struct {
	backend string
	ctx     backend.Context
}

// Open opens the device name of back end by. If by is empty it takes the first back
// end with such a device; if name is empty, the first device with an active port.
func Open(by, name string) (h int64) {
	const op = "open device"
	defer contain(op, &h)
	d, e := openDevice(by, name, op)
	if e != nil {
		return code(e)
	}
	n, e := add("Context", d, d.ctx.Close, op)
	if e != nil {
		d.ctx.Close()
		return code(e)
	}
	return n.handle
}

// openDevice opens a device, without a handle.
func openDevice(by, name, op string) (*device, *Error) {
	if err := sys.PrepareRuntime(); err != nil {
		return nil, refuse("EMFILE", op, nil, "%v", err)
	}
	var known, missing, names []string
	for _, b := range backends {
		known = append(known, b.Name())
		if by != "" && by != b.Name() {
			continue
		}
		devices, err := b.Devices()
		if err != nil {
			missing = append(missing, b.Name()+": "+err.Error())
			continue
		}
		wanted := name
		if c, ok := b.(backend.Chooser); ok && name == "" {
			if wanted, err = c.Choose(); err != nil {
				return nil, from(err, op, nil)
			}
		}
		for _, d := range devices {
			names = append(names, d.Name)
			if d.Name != wanted && (wanted != "" || !active(d)) {
				continue
			}
			ctx, err := b.Open(d.Name)
			if err != nil {
				return nil, from(err, op+" "+d.Name, nil)
			}
			return &device{b.Name(), ctx}, nil
		}
	}
	if by != "" && !contains(known, by) {
		return nil, refuse("EINVAL", op, nil, "there is no back end %q; there are: %s", by, strings.Join(known, ", "))
	}
	problem := fmt.Sprintf("there is no device %q", name)
	if name == "" {
		problem = "there is no device with an active port"
	}
	if len(names) > 0 {
		problem += "; there are: " + strings.Join(names, ", ")
	}
	for _, m := range missing {
		problem += "; " + m
	}
	return nil, refuse("ENODEV", op, nil, "%s", problem)
}

func contains(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}

func active(d backend.Device) bool {
	for _, p := range d.Ports {
		if p.State == "ACTIVE" {
			return true
		}
	}
	return false
}

// ContextInfo returns the device of a context, a JSON object; "" if it is closed.
func ContextInfo(h int64) string {
	d, _, err := get[*device](h, "Context", "query device")
	if err != nil {
		return ""
	}
	return text(d.ctx.Device())
}

// domain is a protection domain.
type domain struct {
	dev *device
	pd  backend.PD
}

// AllocPD makes a protection domain.
func AllocPD(ctx int64) (h int64) {
	const op = "alloc_pd"
	defer contain(op, &h)
	d, n, e := get[*device](ctx, "Context", op)
	if e != nil {
		return code(e)
	}
	pd, err := d.ctx.AllocPD()
	if err != nil {
		return code(from(err, op, nil))
	}
	made, e := add("ProtectionDomain", &domain{d, pd}, pd.Close, op, n)
	if e != nil {
		pd.Close()
		return code(e)
	}
	return made.handle
}

// limit refuses a number that is not from min to max; a max of 0 is no limit.
func limit(op, name string, value, min, max int64) *Error {
	if max == 0 {
		max = math.MaxInt32
	}
	if value < min || value > max {
		return refuse("EINVAL", op, sizes{name: value, "limit": max}, "%s is %d; the device takes %d to %d", name, value, min, max)
	}
	return nil
}
