"""List the devices: ``python -m gormapy.rdma devices``."""

import argparse
import json
import sys
from dataclasses import asdict

_WHAT = {"verbs": "libibverbs", "ofi": "libfabric", "tcp": "software over sockets", "shm": "software on one host"}


def parse(args):
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m gormapy.rdma", description="RDMA on this machine.")
    commands = parser.add_subparsers(dest="command", required=True)
    listing = commands.add_parser("devices", help="list the devices of all back ends, and why others have none")
    listing.add_argument("--json", action="store_true", help="write a JSON object instead of text")
    return parser.parse_args(args)


def main(args=None):
    """Run a command."""
    options = parse(args)
    from . import backends

    found = backends()
    if options.json:
        facts = {
            name: {"problem": listed} if isinstance(listed, str) else {"devices": [asdict(device) for device in listed]}
            for name, listed in found.items()
        }
        print(json.dumps(facts, indent=1))
    else:
        print(table(found))
    sys.stdout.flush()


def table(found):
    """Return the devices as text."""
    rows = [("device", "back end", "port", "state", "link", "MTU", "addresses")]
    notes = []
    for name, listed in found.items():
        if isinstance(listed, str):
            notes.append(f"{name} ({_WHAT.get(name, name)}): {listed}")
            continue
        for device in listed:
            rows += _rows(device)
            notes.append(f"{device.name}: {device.detail}; {_limits(device)}")
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip() for row in rows]
    return "\n".join([*lines, "", *notes])


def _rows(device):
    rows = []
    for port in device.ports:
        link = port.link + (f" {port.gbps:g} Gbit/s" if port.gbps else "")
        for i, address in enumerate(port.addresses or ("",)):
            first = (device.name, device.backend, str(port.num), port.state, link, str(port.mtu or ""))
            rows.append((*(first if i == 0 else [""] * len(first)), address))
    return rows or [(device.name, device.backend, "", "", "", "", "")]


def _limits(device):
    limits = device.limits
    longest = max((port.max_msg for port in device.ports), default=0)
    parts = [f"{name} {limits[name]}" for name in ("max_qp", "max_qp_wr", "max_cqe", "max_inline") if limits.get(name)]
    parts += [f"messages of up to {longest} bytes"] if longest else []
    parts += ["atomics" if limits.get("atomics") else "no atomics"]
    return ", ".join(parts)


if __name__ == "__main__":
    main()
