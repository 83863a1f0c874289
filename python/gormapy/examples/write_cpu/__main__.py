"""Command line of the example: a server without an address, a client with one."""

import argparse
import sys

from gormapy import rdma

from . import __doc__ as about
from .address import Address, Refused
from .client import WrongData
from .link import Gone
from .wire import MOST_PAGES, REGION, Malformed, examine


def parse(args):
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m gormapy.examples.write_cpu",
        description=about.splitlines()[0] + " Without ADDRESS it is the server.",
        epilog="Devices: python -m gormapy.rdma devices",
    )
    parser.add_argument("address", nargs="?", metavar="ADDRESS", help="what the server prints")
    parser.add_argument("page_size", nargs="?", type=int, help="bytes of a page (default: 1048576)")
    parser.add_argument("num_pages", nargs="?", type=int, help=f"pages, at most {MOST_PAGES} (default: 8)")
    parser.add_argument("--backend", metavar="NAME", help="of the server: tcp, shm, verbs or ofi (default: the first)")
    parser.add_argument("--device", metavar="NAME", help="the device (default: the first with an active port)")
    parser.add_argument("--host", default="127.0.0.1", help="server: where clients come to (default: %(default)s)")
    count = parser.add_mutually_exclusive_group()
    count.add_argument("--once", dest="clients", action="store_const", const=1, help="server: end after one client")
    count.add_argument("--clients", type=int, metavar="N", help="server: end after so many; 1 if one was refused")
    parser.add_argument("--timeout", type=float, default=30.0, help="client: seconds to wait (default: %(default)g)")
    parser.add_argument("--quiet", action="store_true", help="leave the DEBUG lines out")
    options = parser.parse_args(args)
    if options.clients is not None and options.clients < 1:
        parser.error(f"argument --clients: there can't be {options.clients}")
    if options.timeout <= 0:
        parser.error(f"argument --timeout: {options.timeout:g} is not a number of seconds to wait for")
    if options.address is None:
        return options
    if (options.page_size is None) != (options.num_pages is None):
        parser.error("page_size and num_pages come together, or not at all")
    if options.page_size is None:
        options.page_size, options.num_pages = 1 << 20, 8
    try:
        options.address = Address.parse(options.address)
        examine(options.page_size, options.num_pages)
    except ValueError as error:
        parser.error(str(error))
    if options.num_pages > REGION // options.page_size:
        parser.error(f"a memory region has {REGION // options.page_size} pages of {options.page_size} bytes")
    if options.backend not in (None, options.address.backend):
        parser.error(f"argument --backend: the server's is {options.address.backend}")
    return options


def main(args=None):
    """Be the server or the client; a client exits with 1 if it does not get its data."""
    options = parse(args)
    if options.address is None:
        from .server import main as run
    else:
        from .client import main as run
    try:
        status = run(options)
    except (rdma.Error, Refused, Gone, Malformed, WrongData, OSError) as error:
        sys.stdout.flush()
        name = "server" if options.address is None else "client"
        what = f"the server is gone: {error}" if isinstance(error, Gone) else error
        sys.exit(f"write_cpu {name}: {what}")
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(status)


if __name__ == "__main__":
    main()
