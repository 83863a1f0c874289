"""Latency and bandwidth of the transfer engine, `gormapy.rdma.Engine`, by size and batch.

    python -m gormapy.bench rdma_engine [--backend NAME] [--op read] [--sizes 8,4096,1048576] [--batches 1,128]

As in MORI-IO's benchmark a batch is that many transfers of one size that are begun together, as one transfer of a
session, and waited for; the next one begins then. The times are those of a batch, its median and its 10th and 90th
percentile; GB are 1e9 bytes. The initiator and the target are two processes of this host, and the target sleeps.
"""

import argparse
import json
import subprocess
import sys
from statistics import quantiles
from time import perf_counter

SIZES = (8, 1024, 4096, 65536, 1 << 20)
BATCHES = (1, 128)
MOST = 1 << 30  # bytes of a batch


def numbers(text):
    """Read "8,4096"."""
    found = [int(word) for word in text.split(",")]
    if not found or min(found) < 1:
        raise ValueError(text)
    return found


def parse(args):
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m gormapy.bench rdma_engine",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--backend", metavar="NAME", help="tcp, shm, verbs or ofi (default: the first with a device)")
    parser.add_argument("--device", metavar="NAME", help="the device (default: the first with an active port)")
    parser.add_argument("--op", choices=("write", "read"), default="write", help="(default: %(default)s)")
    parser.add_argument("--sizes", type=numbers, default=SIZES, metavar="BYTES", help="of a transfer (8,...,1048576)")
    parser.add_argument("--batches", type=numbers, default=BATCHES, metavar="N", help="transfers begun at once (1,128)")
    parser.add_argument("--budget", type=float, default=0.5, help="seconds for each row (default: %(default)g)")
    parser.add_argument("--notify", action="store_true", help="tell the target of each batch")
    parser.add_argument("--polling", action="store_true", help="spin while something is under way")
    parser.add_argument("--queue-pairs", type=int, default=1, metavar="N", help="over which it is spread (%(default)s)")
    parser.add_argument("--json", action="store_true", help="write a JSON object instead of a table")
    parser.add_argument("--target", metavar="BYTES", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args(args)
    if max(options.sizes) * max(options.batches) > MOST:
        parser.error(f"{max(options.batches)} transfers of {max(options.sizes)} bytes are more than {MOST} bytes")
    if not 0 < options.budget < 3600:
        parser.error(f"argument --budget: {options.budget:g} is not a number of seconds to measure for")
    return options


def target(options):
    """Be the target: pass descriptors on, and sleep until the initiator has ended."""
    import numpy as np

    from gormapy import rdma

    with rdma.Engine("target", options.backend, options.device) as engine:
        memory = engine.register_memory(np.ones(options.target, np.uint8))
        print(engine.desc().pack().hex(), memory.pack().hex(), flush=True)
        sys.stdin.readline()


def row(session, options, size, batch, uid):
    """Measure transfers of one size."""
    begin = session.batch_write if options.op == "write" else session.batch_read
    offsets = [2 * size * i for i in range(batch)]  # with gaps, so that they are not merged into one
    lengths = [size] * batch
    times, end = [], perf_counter() + options.budget
    for i in range(1_000_000):
        before = perf_counter()
        status = begin(offsets, offsets, lengths, uid() if options.notify else None).wait()
        after = perf_counter()
        status.check()
        if i >= 3:  # the first ones connect
            times.append(after - before)
        if after > end and len(times) >= 10:
            break
    deciles = quantiles(times, n=10)
    middle = sorted(times)[len(times) // 2]
    return {
        "bytes": size, "batch": batch, "batches": len(times), "us": 1e6 * middle, "p10": 1e6 * deciles[0],
        "p90": 1e6 * deciles[-1], "GB/s": 1e-9 * size * batch / middle,
    }  # fmt: skip


def measure(options):
    """Measure all rows, with a target of its own."""
    import numpy as np

    from gormapy import rdma

    space = 2 * max(options.sizes) * max(options.batches)
    command = [sys.executable, "-m", "gormapy.bench", "rdma_engine", "--target", str(space)]
    for name in ("backend", "device"):
        if getattr(options, name) is not None:
            command += [f"--{name}", getattr(options, name)]
    rows = []
    how = "polling" if options.polling else "event"
    with (
        rdma.Engine(
            "initiator", options.backend, options.device, qp_per_transfer=options.queue_pairs, poll_cq_mode=how
        ) as engine,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process,
    ):
        words = process.stdout.readline().split()
        if len(words) != 2:
            sys.exit(f"gormapy.bench: rdma_engine: the target has ended with status {process.wait()}")
        engine.register_remote(bytes.fromhex(words[0]))
        remote = rdma.MemoryDesc.unpack(bytes.fromhex(words[1]))
        local = engine.register_memory(np.ones(space, np.uint8))
        session = engine.create_session(local, remote)
        for batch in options.batches:
            for size in options.sizes:
                rows.append(row(session, options, size, batch, engine.allocate_transfer_uid))
        about = {
            "backend": engine.desc().backend,
            "device": engine.desc().device,
            "op": options.op,
            "poll_cq_mode": how,
        }
        process.stdin.close()
    return {**about, "rows": rows}


def main(args):
    """Measure and print, and return the exit status."""
    options = parse(args)
    from gormapy import rdma

    try:
        if options.target:
            target(options)
            return 0
        found = measure(options)
    except rdma.Error as error:
        print(f"gormapy.bench: rdma_engine: {error}", file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps(found, indent=1))
        return 0
    print(f"gormapy.rdma.Engine, {found['backend']} {found['device']}, {found['op']}, {found['poll_cq_mode']}")
    print(f"{'bytes':>9} {'batch':>6} {'us':>10} {'p10':>10} {'p90':>10} {'GB/s':>8} {'batches':>8}")
    for line in found["rows"]:
        times = " ".join(f"{line[key]:10.2f}" for key in ("us", "p10", "p90"))
        print(f"{line['bytes']:9} {line['batch']:6} {times} {line['GB/s']:8.3f} {line['batches']:8}")
    return 0
