//go:build cgo

package device

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/libfabric"
)

func needLibfabric(t *testing.T) {
	t.Helper()
	if _, err := libfabric.Open(libfabric.Defaults{}); err != nil {
		t.Skip(err)
	}
}

func TestChoiceOfProvider(t *testing.T) {
	needLibfabric(t)
	for _, r := range []OFIRequest{{}, {Ordered: true, UnboundMR: true}, {NoDeliveryComplete: true, NoAtomics: true}, {Provider: "tcp"}, {Provider: "tcp;ofi_rxm"}} {
		o, err := ChooseOFI(r)
		require.NoError(t, err, "%+v", r)
		assert.Contains(t, preferred, o.Info.Provider, "%+v", r)
		if r.Ordered {
			assert.True(t, o.Order)
			assert.Zero(t, o.Info.MRMode&libfabric.MREndpoint)
		}
		assert.False(t, r.NoDeliveryComplete && o.Delivery)
		assert.False(t, r.NoAtomics && o.Atomics)
		if r.Provider != "" {
			assert.Equal(t, "tcp;ofi_rxm", o.Info.Provider, "tcp alone has no reliable datagrams")
			assert.True(t, o.IP().IsLoopback())
		}
		o.Info.Free()
	}
	o, err := ChooseOFI(OFIRequest{Provider: "tcp;ofi_rxm", Routable: true})
	require.NoError(t, err)
	o.Info.Free()
}

// Of a host's addresses, that one comes first by which it reaches the others.
func TestOrderOfAddresses(t *testing.T) {
	offer := func(text string) *Offer {
		a := netip.MustParseAddr(text)
		i := &libfabric.Info{AddressFormat: 2, SourceAddress: append(make([]byte, 4), a.AsSlice()...)}
		if a.Is6() {
			i.AddressFormat, i.SourceAddress = 3, append(make([]byte, 8), a.AsSlice()...)
		}
		return &Offer{Info: i}
	}
	own := func() []*Offer {
		return []*Offer{offer("172.17.0.1"), offer("127.0.0.1"), offer("fe80::1"), offer("10.0.0.1"), offer("::1"), {Info: &libfabric.Info{Domain: "efa"}}}
	}
	for _, c := range []struct {
		r    OFIRequest
		want string
	}{
		{OFIRequest{}, "127.0.0.1 ::1 172.17.0.1 fe80::1 10.0.0.1 invalid IP"},
		{OFIRequest{Domain: "eth0"}, "172.17.0.1 127.0.0.1 fe80::1 10.0.0.1 ::1 invalid IP"},
		{OFIRequest{Routable: true}, "172.17.0.1 10.0.0.1 invalid IP fe80::1 127.0.0.1 ::1"},
		{OFIRequest{Routable: true, Address: netip.MustParseAddr("10.0.0.1")}, "10.0.0.1 172.17.0.1 invalid IP fe80::1 127.0.0.1 ::1"},
		{OFIRequest{Routable: true, Address: netip.MustParseAddr("127.0.0.1")}, "127.0.0.1 172.17.0.1 10.0.0.1 invalid IP fe80::1 ::1"},
	} {
		offers := own()
		c.r.order(offers)
		var got []string
		for _, o := range offers {
			got = append(got, o.IP().String())
		}
		assert.Equal(t, c.want, strings.Join(got, " "), "%+v", c.r)
	}
}

// shm is listed only if it is named, and then last, so that the others keep their places.
func TestOffers(t *testing.T) {
	needLibfabric(t)
	all, err := OFIOffers(OFIRequest{})
	require.NoError(t, err)
	defer FreeOffers(all, nil)
	domains := map[string]bool{}
	for _, o := range all {
		assert.Contains(t, preferred, o.Info.Provider)
		assert.False(t, domains[o.Info.Provider+o.Info.Domain], "%s twice", o.Info.Domain)
		domains[o.Info.Provider+o.Info.Domain] = true
	}
	r := OFIRequest{Provider: "shm"}
	shm, err := OFIOffers(r)
	require.NoError(t, err)
	defer FreeOffers(shm, nil)
	require.Greater(t, len(shm), len(all))
	for i, o := range shm {
		assert.Equal(t, i >= len(all), r.Takes(o))
		if i < len(all) {
			assert.Equal(t, all[i].Info.Domain, o.Info.Domain)
		}
	}
}

func TestUnavailableProvider(t *testing.T) {
	needLibfabric(t)
	_, err := ChooseOFI(OFIRequest{Provider: "none", Domain: "eth9"})
	assert.ErrorIs(t, err, libfabric.ErrNoProvider)
	assert.ErrorContains(t, err, "asked for libfabric's provider none on eth9: no provider offers what was asked for: reliable datagrams, messages and RMA; there is ")
	assert.ErrorContains(t, err, "tcp;ofi_rxm")
	assert.ErrorContains(t, err, "; GORMAPY_OFI_PROV names a provider; fi_info lists them")
}

// A key that is taken is drawn again.
func TestKeys(t *testing.T) {
	needLibfabric(t)
	o, err := ChooseOFI(OFIRequest{Provider: "tcp;ofi_rxm", UnboundMR: true})
	require.NoError(t, err)
	defer o.Info.Free()
	require.Zero(t, o.Info.MRMode&libfabric.MRProvKey)
	net, err := libfabric.OpenFabric(o.Info)
	require.NoError(t, err)
	defer net.Close()
	d, err := net.OpenDomain(o.Info)
	require.NoError(t, err)
	defer d.Close()
	m, err := Map[*libfabric.MR](4096, "the test", nil)
	require.NoError(t, err)
	defer m.Unmap()
	register := func() (*libfabric.MR, error) {
		return o.Register(d, nil, uintptr(m.Cut(0, 1, 4096).Addr(0)), 4096, ReadOnly)
	}
	o.Info.MRKeySize = 1
	keys := map[uint64]bool{}
	for range 60 { // of 256: two alike are drawn with a probability of 99.9 %
		mr, err := register()
		require.NoError(t, err)
		defer mr.Close()
		assert.Less(t, mr.Key, uint64(256))
		assert.False(t, keys[mr.Key])
		keys[mr.Key] = true
	}
	for err = nil; err == nil; {
		var mr *libfabric.MR
		if mr, err = register(); err == nil {
			defer mr.Close()
			require.Less(t, len(keys), 257)
			keys[mr.Key] = true
		}
	}
	assert.ErrorContains(t, err, "register 4096 bytes: 8 keys that were tried are taken")
	for range 1000 {
		assert.Zero(t, drawKey(8)>>63, "a key is a positive number of 64 bits")
		assert.Zero(t, drawKey(4)>>32)
	}
}
