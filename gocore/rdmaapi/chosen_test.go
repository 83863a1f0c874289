package rdmaapi

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/rdmaapi/backend"
	"gormapy/gocore/rdmaapi/ofi"
	"gormapy/gocore/rdmaapi/soft"
)

// chosen is a back end of the devices of software, whose device is chosen.
type chosen struct {
	backend.Backend
	name string
	err  error
}

func (c chosen) Name() string            { return "chosen" }
func (c chosen) Choose() (string, error) { return c.name, c.err }
func (c chosen) Devices() ([]backend.Device, error) {
	first := backend.Device{Name: "none0", Ports: []backend.Port{{Num: 1, State: "ACTIVE"}}}
	devices, err := c.Backend.Devices()
	return append([]backend.Device{first}, devices...), err
}

// A program's own words win over settings, and settings over the first device.
func TestChosenDevice(t *testing.T) {
	before := backends
	t.Cleanup(func() { backends = before })
	with := func(c chosen) {
		c.Backend = soft.SHM
		backends = []backend.Backend{c, soft.TCP}
	}
	with(chosen{name: "shm0"})
	d, e := openDevice("", "", "open device")
	require.Nil(t, e)
	assert.Equal(t, "shm0", d.ctx.Device().Name)
	require.NoError(t, d.ctx.Close())

	with(chosen{err: &backend.Errno{Name: "ENODEV", Text: "asked for a device"}})
	for _, by := range []string{"", "chosen"} {
		_, e = openDevice(by, "", "open device")
		require.NotNil(t, e, "never silently another one")
		assert.Contains(t, e.Error(), "asked for a device")
	}
	for _, name := range []string{"shm0", "tcp0"} {
		d, e = openDevice("", name, "open device")
		require.Nil(t, e, "the program says which")
		assert.Equal(t, name, d.ctx.Device().Name)
		require.NoError(t, d.ctx.Close())
	}
	d, e = openDevice("tcp", "", "open device")
	require.Nil(t, e)
	require.NoError(t, d.ctx.Close())
}

// libfabric's shm provider is there when it is asked for, and only then.
func TestSettingsChooseTheProvider(t *testing.T) {
	devices, err := ofi.Backend{}.Devices()
	if err != nil {
		t.Skip(err)
	}
	for _, d := range devices {
		assert.NotContains(t, d.Detail, "provider shm,")
	}
	detail := func(name string) string {
		h := must(t, Open("ofi", name))
		defer Close(h)
		var d backend.Device
		require.NoError(t, json.Unmarshal([]byte(ContextInfo(h)), &d))
		return d.Detail
	}
	assert.Equal(t, devices[0].Detail, detail(""))
	t.Setenv("GORMAPY_OFI_PROV", "shm")
	assert.Contains(t, detail(""), "provider shm,")
	assert.Equal(t, devices[0].Detail, detail(devices[0].Name), "the program says which")
	t.Setenv("GORMAPY_OFI_PROV", "none")
	h := Open("ofi", "")
	require.Negative(t, h)
	assert.Contains(t, ErrorOf(h), "asked for libfabric's provider none: ")
	assert.Equal(t, devices[0].Detail, detail(devices[0].Name))
}
