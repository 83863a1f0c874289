"""The client: it asks for random data in its memory, and checks it."""

import numpy as np

from gormapy import rdma
from gormapy.mt19937 import MT19937_64, random_bytes

from . import wire
from .address import Refused, introduce, watch
from .link import Link, about

SEED = 0xABCDABCD987  # of the generator of the request's seed and pages
CONTEXT = 0x123  # the immediate data that announces that all data have arrived


class WrongData(Exception):
    """The memory has unexpected data."""


def prepare(page_size, num_pages, rng):
    """Return the request: a seed, and pages as std::sample of libstdc++ chooses them."""
    wire.examine(page_size, num_pages)
    seed = rng.next()
    pages = rng.sample(wire.REGION // page_size, num_pages)
    return wire.RandomFill(CONTEXT, seed, page_size, tuple(int(page) for page in pages))


class Client:
    """A client that is connected to a server: two regions of zeros, and the link."""

    def __init__(self, context, address):
        pd = context.alloc_pd()
        self.arrays = [np.zeros(wire.REGION, np.uint8) for _ in range(2)]
        self.regions = [pd.register(array) for array in self.arrays]
        self.link = Link(pd)
        info = self.link.info()
        sock, peer = introduce(address, info)
        self.link.connect(sock, peer)
        self.addr = wire.client_addr(info)

    def connect(self):
        """Send CONNECT."""
        regions = (wire.Region(region.addr, region.length, region.rkey) for region in self.regions)
        self.link.send(wire.Connect(self.addr, tuple(regions)).pack())

    def request(self, request):
        """Send RANDOMFILL."""
        self.link.send(request.pack())

    def wait(self, timeout=None):
        """Wait for the immediate data and return it; raise `Refused` with what the server says instead."""
        try:
            message, imm = self.link.receive(timeout)
        except rdma.TimedOut:
            raise
        except rdma.Error:
            watch(self.link.sock, 1.0)  # the server may say why it broke the connection
            raise
        if imm is None:
            raise Refused("the server refused: " + wire.unpack_refused(message))
        return imm

    def verify(self, request):
        """Compare both regions with what they must be now: the pages asked for, and zeros elsewhere."""
        size, pages = request.page_size, list(request.pages)
        for i, array in enumerate(self.arrays):
            expected = random_bytes((request.seed + i) % 2**64, request.nbytes).reshape(-1, size)
            whole = array[: len(array) // size * size].reshape(-1, size)
            wrong = [page for page, data in zip(pages, expected) if not np.array_equal(whole[page], data)]
            if wrong:
                raise WrongData(f"MR[{i}]: {len(wrong)} of {len(pages)} pages are wrong, page {wrong[0]} first")
            others = np.ones(len(whole), bool)
            others[pages] = False
            if whole[others].any() or array[whole.size :].any():
                raise WrongData(f"MR[{i}]: something was written outside of the pages that were asked for")

    def close(self):
        """Disconnect, and free everything when the server has disconnected, so that no write is in flight any more."""
        self.link.linger()
        self.link.close()


def configuration(request):
    """Return the lines about the request."""
    size, region = request.page_size, wire.REGION
    yield "DEBUG CLIENT: Configuration:"
    yield f"  page_size: {size} ({size >> 20}MB)"
    yield f"  num_pages: {len(request.pages)}"
    yield f"  max_pages: {region // size}"
    yield f"  kMemoryRegionSize: {region} ({region >> 20}MB)"
    yield "DEBUG CLIENT: Generated page indices:"
    for j, page in enumerate(request.pages):
        yield f"  page_idx[{j}] = {page} (offset = {page} * {size} = {page * size})"


def main(options):
    """Run the client; return the exit status."""
    request = prepare(options.page_size, options.num_pages, MT19937_64(SEED))
    with rdma.Context(options.device, options.address.backend) as context:
        print(about(context), flush=True)
        client = Client(context, options.address)
        try:
            print("Registered 2 buffers in CPU memory")
            if not options.quiet:
                print(*configuration(request), sep="\n")
            client.connect()
            print("Sent CONNECT message to server", flush=True)
            client.request(request)
            pages = len(request.pages)
            print(f"Sent RandomFillRequest to server. page_size: {request.page_size}, num_pages: {pages}", flush=True)
            imm = client.wait(options.timeout)
            if imm != CONTEXT:
                raise WrongData(f"immediate data {imm:#x} instead of {CONTEXT:#x}")
            print("Received RDMA WRITE to local CPU memory.")
            client.verify(request)
            print("Data is correct", flush=True)
        finally:
            client.close()
    return 0
