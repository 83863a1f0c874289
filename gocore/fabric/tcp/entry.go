package tcp

import (
	"strconv"

	"gormapy/gocore/fabric"
	"gormapy/gocore/settings"
)

// Interface is the setting of the network interface.
var Interface = settings.Add(settings.Setting{Name: "GORMAPY_TCP_IF", Reader: settings.ByRanks,
	Meaning: "network interface by which hosts reach each other by TCP, such as eth0; if it is not set, ranks try the addresses of all interfaces, and use the first at which the right process answers"})

// Connections is the setting of the number of connections.
var Connections = settings.Add(settings.Setting{Name: "GORMAPY_TCP_CONNECTIONS", Default: "auto", Choices: []string{"auto", "1", "2", "3", "4", "5", "6", "7", "8"}, Reader: settings.ByRanks,
	Meaning: "connections between two ranks, for messages of many kilobytes: auto is one, and four between hosts where four were measured to carry more, since the network limits each"})

// Entry is that of package registry.
var Entry = fabric.Entry{
	Name:     "tcp",
	What:     func() string { return "sockets between processes, on this host or others" },
	OneSided: "the target's progress engine serves them; connections are authenticated with a secret of the job, between hosts all that is sent on them, too",
	Settings: []*settings.Setting{Interface, Connections, TLS, MAC},
	Open: func(dir fabric.Directory) (fabric.Transport, error) {
		o, err := OptionsFor(dir.Hosts())
		if err != nil {
			return nil, err
		}
		return New(dir, o)
	},
	Problem: fabric.Usable,
}

// OptionsFor returns the options, by the settings, for peers on a number of hosts.
func OptionsFor(hosts int) (Options, error) {
	guard, err := GuardFor(hosts)
	o := Options{Interface: Interface.Value(), Hosts: hosts > 1 && !Interface.Given(), Guard: guard}
	if n, err := strconv.Atoi(Connections.Value()); err == nil {
		o.Connections = n
	} else if hosts > 1 {
		o.Connections, o.Measure = triedConnections, true
	}
	return o, err
}
