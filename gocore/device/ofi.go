//go:build cgo

package device

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gormapy/gocore/ibverbs"
	"gormapy/gocore/libfabric"
)

// preferred are the providers that are used without being named, the fastest networks
// first.
var preferred = []string{"efa", "verbs;ofi_rxm", "tcp;ofi_rxm"}

// wishes are sets of features, tried in turn. Without a feature operations are only slower,
// or emulated.
var wishes = []libfabric.Hints{
	{Caps: libfabric.CapAtomic, Order: libfabric.OrderSAS, TxFlags: libfabric.DeliveryComplete},
	{Order: libfabric.OrderSAS, TxFlags: libfabric.DeliveryComplete},
	{TxFlags: libfabric.DeliveryComplete},
	{Caps: libfabric.CapAtomic, Order: libfabric.OrderSAS},
	{Order: libfabric.OrderSAS},
	{},
}

// Offer is one way to use a provider, with the features that it has. Info has to be freed.
type Offer struct {
	Info                     *libfabric.Info
	Delivery, Order, Atomics bool // FI_DELIVERY_COMPLETE, FI_ORDER_SAS, FI_ATOMIC
}

// ChooseOFI returns the offer that r asks for.
func ChooseOFI(r OFIRequest) (*Offer, error) {
	if _, err := libfabric.Open(libfabric.Defaults{}); err != nil {
		return nil, err
	}
	for _, name := range r.names() {
		for _, wish := range wishes {
			offers, err := r.offers(name, wish)
			if err != nil {
				return nil, err
			}
			if len(offers) > 0 {
				FreeOffers(offers, offers[0])
				return offers[0], nil
			}
		}
	}
	return nil, r.Unavailable()
}

// OFIOffers returns the best offer for each domain of each preferred provider, then those
// of the provider that r names if that is another one. So the places of the former in the
// list do not depend on r.
func OFIOffers(r OFIRequest) ([]*Offer, error) {
	if _, err := libfabric.Open(libfabric.Defaults{}); err != nil {
		return nil, err
	}
	names := preferred
	if r.Provider != "" && !slices.ContainsFunc(preferred, r.named) {
		names = append(slices.Clone(preferred), r.Provider)
	}
	var all []*Offer
	for _, name := range names {
		seen := map[string]bool{}
		for _, wish := range wishes {
			offers, err := r.offers(name, wish)
			if err != nil {
				FreeOffers(all, nil)
				return nil, err
			}
			for _, o := range offers {
				if seen[o.Info.Domain] {
					o.Info.Free()
					continue
				}
				seen[o.Info.Domain] = true
				all = append(all, o)
			}
		}
	}
	if len(all) == 0 {
		return nil, r.Unavailable()
	}
	return all, nil
}

// FreeOffers frees all offers of a list but one, which may be nil.
func FreeOffers(offers []*Offer, but *Offer) {
	for _, o := range offers {
		if o != but {
			o.Info.Free()
		}
	}
}

// names returns the providers to try, in their order.
func (r OFIRequest) names() []string {
	if r.Provider != "" {
		return []string{r.Provider}
	}
	return preferred
}

// named reports whether r names this provider. "verbs" names "verbs;ofi_rxm", too, as it
// does for the library.
func (r OFIRequest) named(provider string) bool {
	return strings.EqualFold(provider, r.Provider) ||
		!strings.Contains(r.Provider, ";") && strings.HasPrefix(strings.ToLower(provider), strings.ToLower(r.Provider)+";")
}

// Takes reports whether r, which names a provider, names that of o.
func (r OFIRequest) Takes(o *Offer) bool { return r.named(o.Info.Provider) }

// offers returns a provider's offers for one of the wishes. The library orders them by
// speed; order has precedence.
func (r OFIRequest) offers(name string, wish libfabric.Hints) ([]*Offer, error) {
	made := Offer{Delivery: wish.TxFlags != 0, Order: wish.Order != 0, Atomics: wish.Caps != 0}
	if r.NoDeliveryComplete && made.Delivery || r.NoAtomics && made.Atomics || r.Ordered && !made.Order {
		return nil, nil
	}
	wish.Provider, wish.Domain = name, r.Domain
	wish.Caps |= libfabric.CapMsg | libfabric.CapRMA
	infos, err := libfabric.GetInfo(wish)
	if errors.Is(err, libfabric.ErrNoProvider) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("ask libfabric for provider %s: %w", name, err)
	}
	// The library adds layers, and other providers of a similar name.
	exact := slices.ContainsFunc(infos, func(i *libfabric.Info) bool { return strings.EqualFold(i.Provider, name) })
	asked := OFIRequest{Provider: name}
	var all []*Offer
	for _, i := range infos {
		if exact && !strings.EqualFold(i.Provider, name) || !asked.named(i.Provider) || r.UnboundMR && i.MRMode&libfabric.MREndpoint != 0 {
			i.Free()
			continue
		}
		o := made
		o.Info = i
		all = append(all, &o)
	}
	r.order(all)
	return all, nil
}

// Unavailable returns the error for a request that can't be met.
func (r OFIRequest) Unavailable() error {
	asked := "libfabric's provider " + strings.Join(r.names(), " or ")
	if r.Domain != "" {
		asked += " on " + r.Domain
	}
	return &Unavailable{
		Asked: asked, Found: libfabric.Providers(),
		Err:    fmt.Errorf("%w: reliable datagrams, messages and RMA", libfabric.ErrNoProvider),
		Advice: OFIProvider.Name + " names a provider; fi_info lists them",
	}
}

// enokey is FI_ENOKEY. Registration returns it if the key is taken.
const enokey = libfabric.Errno(266)

// KeyTaken reports whether err is that memory can't be registered because a key is taken.
func KeyTaken(err error) bool { return errors.Is(err, enokey) }

// keyTries is how many keys are drawn at most.
const keyTries = 8

// Register registers n bytes at addr in a domain of o, see the package comment. ep is the
// endpoint that the memory is for, which providers with FI_MR_ENDPOINT need.
func (o *Offer) Register(d *libfabric.Domain, ep *libfabric.Endpoint, addr uintptr, n int, access Access) (*libfabric.MR, error) {
	provKey := o.Info.MRMode&libfabric.MRProvKey != 0
	for range keyTries {
		var key uint64
		if !provKey {
			key = drawKey(o.Info.MRKeySize)
		}
		mr, err := d.Register(addr, n, ofiAccess(access), key, o.Info, ep)
		if KeyTaken(err) && !provKey {
			continue
		}
		return mr, err
	}
	return nil, fmt.Errorf("register %d bytes: %d keys that were tried are taken", n, keyTries)
}

// drawKey returns a random key of size bytes, at most 63 bits.
func drawKey(size int) uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	key := binary.LittleEndian.Uint64(b[:]) >> 1
	if size > 0 && size < 8 {
		key &= 1<<(8*size) - 1
	}
	return key
}

// ofiAccess returns libfabric's flags for access. It has none for atomics alone.
func ofiAccess(access Access) libfabric.Access {
	a := libfabric.AccessSend | libfabric.AccessWrite
	if access&LocalWrite != 0 {
		a |= libfabric.AccessRecv | libfabric.AccessRead
	}
	if access&(ibverbs.RemoteWrite|ibverbs.RemoteAtomic) != 0 {
		a |= libfabric.AccessRemoteWrite
	}
	if access&(ibverbs.RemoteRead|ibverbs.RemoteAtomic) != 0 {
		a |= libfabric.AccessRemoteRead
	}
	return a
}
