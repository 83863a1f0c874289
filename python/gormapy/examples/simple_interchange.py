"""Write 1024 bytes from one buffer into another by RDMA, in eight steps: the example of MORI, on the processor.

    python -m gormapy.examples.simple_interchange [--backend tcp|shm|verbs|ofi] [--device NAME] [--explain]

In MORI a kernel on the GPU posts the write: it writes a work request into the queue pair's memory, then the
*doorbell record* (how far the queue is filled), then the *doorbell*, a register of the network device. **From
here no GPU can post**: libibverbs and libfabric ring the doorbell themselves, from a thread on the processor,
and the queues of the devices are theirs. So a proxy does it, as libraries do where a GPU has no such access
(NVSHMEM's IBRC transport): the kernel writes requests to a queue in plain memory (`ProxyQueue`), and a thread of
the processor posts them and writes down what has completed. Two of the steps of a kernel mean something else then:

- UpdateSendDbrRecord says how many requests of the queue are complete, and may be posted: a number in memory.
- RingDoorbell wakes the proxy, which posts everything up to that number in one batch. With a device that is one
  doorbell for all of them, however many there are.

The "kernel" is a thread, too, unless `--array cupy` or `--array torch` (CUDA or HIP) is given: then the buffers
lie on the GPU, kernels of that library fill and verify them, and the data goes through registered memory of
the host, because the memory of a device can't be registered from here.
"""

import argparse
import sys
import threading
from contextlib import ExitStack
from itertools import pairwise

import numpy as np

from gormapy import rdma

DEPTH = 64  # requests of the queue, a power of two
NOTE = "no GPU can post from here: a proxy thread posts for the kernel"

EXPLAINED = {
    3: "two contexts, as two programs would have: nothing is shared but the device",
    4: "a queue pair each; it completes to a completion queue of its own",
    5: "each side gets the other's info: addresses, number of the queue pair, a secret",
    6: "registering pins the memory and makes keys: lkey for the own device, rkey for the peer",
    7: NOTE + "; its doorbell record is a number in memory, its doorbell wakes the proxy, which posts a batch",
    8: "in any order: closing an object closes what was made of it",
}


class ProxyQueue:
    """A queue of writes in memory: a kernel fills it, a proxy posts from it and counts how many are done.

    The kernel writes the requests, `posted` and `consumed`; the proxy writes `done` and `error`. A request may be
    overwritten when it has been consumed. Numbers only grow, and requests complete in order.
    """

    FIELDS = np.dtype([("local", "u8"), ("remote", "u8"), ("length", "u8")])

    def __init__(self, depth=DEPTH):
        self.requests = np.zeros(depth, self.FIELDS)
        self.posted = 0  # the doorbell record
        self.consumed = 0
        self.done = 0
        self.error = None
        self.stopped = False
        self._next = 0
        self._doorbell = threading.Semaphore(0)
        self._completed = threading.Condition()

    # Called by a kernel.

    def post_write(self, local, remote, length):
        """Write a request; return the number that the doorbell record is to have."""
        if self._next - self.consumed == len(self.requests):
            raise BufferError(f"the queue has room for {len(self.requests)} requests: poll_cq first")
        self.requests[self._next % len(self.requests)] = local, remote, length
        self._next += 1
        return self._next

    def update_send_dbr_record(self, number):
        """Announce that all requests before a number are complete."""
        self.posted = number

    def ring_doorbell(self):
        """Wake the proxy."""
        self._doorbell.release()

    def poll_cq(self, number, timeout=30.0):
        """Wait until all requests before a number are done."""
        with self._completed:
            self._completed.wait_for(lambda: self.error or self.done >= number, timeout)
        if self.error:
            raise self.error
        if self.done < number:
            raise TimeoutError(f"{self.done} of {number} writes are done after {timeout} s")

    def update_cq_dbr_record(self, number):
        """Release the places of all requests before a number."""
        self.consumed = number

    # Called by the proxy.

    def serve(self, pair, source, target):
        """Post requests, until `stop`: a batch for each doorbell, and at most one per request."""
        batch = min(len(self.requests), pair.max_send_wr)
        try:
            while True:
                self._doorbell.acquire()
                if self.stopped:
                    return
                while self.done < self.posted:
                    end = min(self.posted, self.done + batch)
                    self._post(pair, source, target, self.done, end)
                    pair.send_cq.wait(timeout=30)  # for the last one, and they are done in order
                    self._tell(done=end)
        except Exception as error:
            self._tell(error=error)

    def _post(self, pair, source, target, begin, end):
        with pair.batch() as batch:
            for number in range(begin, end):
                local, remote, length = (int(field) for field in self.requests[number % len(self.requests)])
                batch.post_write(
                    source, target, local_offset=local, remote_offset=remote, length=length, signaled=number == end - 1
                )

    def _tell(self, done=None, error=None):
        with self._completed:
            self.done, self.error = self.done if done is None else done, error
            self._completed.notify_all()

    def stop(self):
        """End `serve`."""
        self.stopped = True
        self._doorbell.release()


class HostArray:
    """Memory that can be registered as it is, and a "kernel" that is a thread of the processor."""

    name = "NumPy"

    def __init__(self, nbytes):
        self.host = np.zeros(nbytes, np.uint8)

    def fill(self, value):
        """Fill the buffer."""
        self.host.fill(value)

    def wrong(self, value):
        """Return how many bytes are not of a value."""
        return int(np.count_nonzero(self.host != value))

    def to_host(self):
        """Copy the buffer to where it is registered."""

    def from_host(self):
        """Copy it from there."""


class CupyArray(HostArray):
    """Memory of a device by CuPy, staged through that of the host."""

    def __init__(self, nbytes):
        import cupy

        super().__init__(nbytes)
        device = cupy.cuda.Device()
        self.name = f"CuPy, device {device.id}, staged through memory of the host"
        self._cupy = cupy
        self._array = cupy.zeros(nbytes, cupy.uint8)

    def fill(self, value):
        """Fill the buffer by a kernel."""
        self._array.fill(value)

    def wrong(self, value):
        """Count by a kernel."""
        return int(self._cupy.count_nonzero(self._array != value))

    def to_host(self):
        """Copy from the device."""
        self._array.get(out=self.host)

    def from_host(self):
        """Copy to the device."""
        self._array.set(self.host)


class TorchArray(HostArray):
    """Memory of a device by PyTorch (CUDA, or HIP under the same name), staged through that of the host."""

    def __init__(self, nbytes):
        import torch  # type: ignore[import-not-found]

        super().__init__(nbytes)
        if not torch.cuda.is_available():
            raise RuntimeError("PyTorch sees no CUDA or HIP device")
        self.name = f"PyTorch, {torch.cuda.get_device_name()}, staged through memory of the host"
        self._array = torch.zeros(nbytes, dtype=torch.uint8, device="cuda")
        self._host = torch.from_numpy(self.host)

    def fill(self, value):
        """Fill the buffer by a kernel."""
        self._array.fill_(value)

    def wrong(self, value):
        """Count by a kernel."""
        return int((self._array != value).sum())

    def to_host(self):
        """Copy from the device."""
        self._host.copy_(self._array)

    def from_host(self):
        """Copy to the device."""
        self._array.copy_(self._host)


ARRAYS = {"numpy": HostArray, "cupy": CupyArray, "torch": TorchArray}


def parse(args):
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m gormapy.examples.simple_interchange",
        description="Write a buffer into another one by RDMA, in eight steps.",
        epilog="Devices: python -m gormapy.rdma devices",
    )
    parser.add_argument("--backend", metavar="NAME", help="tcp, shm, verbs or ofi (default: the first with a device)")
    parser.add_argument("--device", metavar="NAME", help="the device (default: the first with an active port)")
    parser.add_argument("--size", type=int, default=1024, metavar="BYTES", help="bytes to write (default: %(default)s)")
    parser.add_argument("--value", type=int, default=42, help="what they are filled with (default: %(default)s)")
    parser.add_argument("--writes", type=int, default=1, help="write them in so many pieces (default: %(default)s)")
    parser.add_argument("--array", choices=ARRAYS, default="numpy", help="whose memory (default: %(default)s)")
    parser.add_argument("--explain", action="store_true", help="say more about the steps")
    options = parser.parse_args(args)
    if not 1 <= options.size <= 1 << 30:
        parser.error(f"argument --size: {options.size} is not from 1 to 2**30")
    if not 1 <= options.value <= 255:
        parser.error(f"argument --value: {options.value} is not from 1 to 255 (buffers are zero before)")
    if not 1 <= options.writes <= min(options.size, 1 << 16):
        parser.error(
            f"argument --writes: {options.size} bytes can be written in 1 to {min(options.size, 1 << 16)} pieces"
        )
    return options


def active_ports(devices):
    """Return the active ports with their devices."""
    return [(device, port) for device in devices for port in device.ports if port.state == "ACTIVE"]


def kernel(queue, send, recv, value, writes):
    """Do what the kernel of the example does: fill, write, wait, and verify; return how many bytes are wrong."""
    size = len(send.host)
    send.fill(value)
    send.to_host()  # __threadfence_system() and, with a device, the staging that IBGDA saves
    ends = [size * i // writes for i in range(writes + 1)]
    for begin, end in pairwise(ends):
        if queue.posted - queue.consumed == len(queue.requests):
            queue.poll_cq(queue.posted)
            queue.update_cq_dbr_record(queue.posted)
        number = queue.post_write(begin, begin, end - begin)
        queue.update_send_dbr_record(number)
        queue.ring_doorbell()
    queue.poll_cq(number)
    queue.update_cq_dbr_record(number)
    recv.from_host()
    return recv.wrong(value)


def main(args=None):
    """Run the eight steps; exit with 1 if the data is wrong."""
    options = parse(args)
    try:
        with ExitStack() as stack:
            status = interchange(options, stack)
    except (rdma.Error, RuntimeError, ImportError, TimeoutError) as error:
        sys.stdout.flush()
        sys.exit(f"simple_interchange: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(status)


def interchange(options, stack):
    """Run the eight steps, and return the exit status."""

    def step(number, text):
        print(f"Step {number}: {text}...", flush=True)
        if options.explain and number in EXPLAINED:
            print(f"  ({EXPLAINED[number]})")

    size, value = options.size, options.value
    print("=== Simple GPU Data Interchange Example ===")
    print(f"Transferring {size} bytes with value {value}\n")

    step(1, "Initializing RDMA context")
    devices = [device for device in rdma.devices(options.backend) if options.device in (None, device.name)]
    print(f"  Found {len(devices)} RDMA device(s)")

    step(2, "Getting RDMA devices")
    ports = active_ports(devices)
    print(f"  Found {len(ports)} active device port(s)")
    if not ports:
        raise RuntimeError(absence(options))
    device = ports[0][0]

    step(3, "Creating device contexts")
    context_send, context_recv = (
        stack.enter_context(rdma.Context(device.name, device.backend)) for _ in ("send", "recv")
    )
    print("  Device contexts created")

    step(4, "Creating RDMA endpoints")
    pd_send, pd_recv = context_send.alloc_pd(), context_recv.alloc_pd()
    send = pd_send.create_qp(context_send.create_cq(DEPTH), max_send_wr=DEPTH)
    recv = pd_recv.create_qp(context_recv.create_cq(DEPTH), max_send_wr=DEPTH)
    print(f"  Endpoints created (QPN: send={send.qp_num}, recv={recv.qp_num})")

    step(5, "Connecting endpoints")
    send.connect(recv.info())
    recv.connect(send.info())
    print("  Endpoints connected")

    step(6, "Allocating and registering GPU buffers")
    send_buffer, recv_buffer = (ARRAYS[options.array](size) for _ in ("send", "recv"))
    mr_send, mr_recv = pd_send.register(send_buffer.host), pd_recv.register(recv_buffer.host)
    if options.explain:
        print(f"  ({send_buffer.name}; lkey {mr_send.lkey:#x}, rkey {mr_recv.rkey:#x})")
    print("  Buffers allocated and registered")

    step(7, "Launching GPU kernel for data interchange")
    sys.stdout.flush()
    print(f"simple_interchange: {NOTE} (--explain says more)", file=sys.stderr, flush=True)
    queue, outcome = ProxyQueue(), []
    proxy = threading.Thread(target=queue.serve, args=(send, mr_send, mr_recv.remote), daemon=True)
    proxy.start()
    try:
        launched = threading.Thread(
            target=_launch, args=(outcome, kernel, queue, send_buffer, recv_buffer, value, options.writes), daemon=True
        )
        launched.start()
        launched.join()
    finally:
        queue.stop()
        proxy.join(5)
    wrong = outcome[0]
    if isinstance(wrong, Exception):
        raise wrong
    if wrong:
        print(f"Error! {wrong} of {size} bytes are not {value}")
    else:
        print(f"Success! All {size} bytes verified with value {value}")
    print("  Kernel execution completed")

    step(8, "Cleaning up resources")
    for made in (mr_send, mr_recv, send, recv, context_send, context_recv):
        made.close()
    print("  Resources cleaned up\n")
    print(f"=== Example {'failed' if wrong else 'completed successfully'}! ===", flush=True)
    return 1 if wrong else 0


def _launch(outcome, function, *args):
    """Run a function, and keep its result or its exception."""
    try:
        outcome.append(function(*args))
    except Exception as error:
        outcome.append(error)


def absence(options):
    """Return why there is no device."""
    wanted = f"no device {options.device!r}" if options.device else "no device with an active port"
    there = []
    for name, found in rdma.backends().items():
        if options.backend in (None, name):
            there.append(f"{name}: {found if isinstance(found, str) else ', '.join(device.name for device in found)}")
    return f"there is {wanted}; there is {'; '.join(there)}"


if __name__ == "__main__":
    main()
