"""The two processes of a step of rdma_ladder: one whose memory is written to, and one that writes.

They take a JSON object on the command line. The writer starts the target, and prints progress lines if it is to,
and at the end a JSON object with what it measured.
"""

import json
import os
import subprocess
import sys
import threading
import time

PATIENCE = 60.0  # seconds without a completion after which something is wrong
EVERY = 0.5  # seconds between progress lines


def command(role, config):
    """Return the command of a process; it is bound to its cores before anything starts a thread."""
    code = (
        "import json, os, sys\n"
        "cores = json.loads(sys.argv[2])['cores'][sys.argv[1]]\n"
        "cores and os.sched_setaffinity(0, cores)\n"
        "from gormapy.bench.rdma_writer import main\n"
        "main(sys.argv[1], json.loads(sys.argv[2]))\n"
    )
    return [sys.executable, "-c", code, role, json.dumps(config)]


def main(role, config):
    """Be one of the processes."""
    from gormapy import rdma

    try:
        with rdma.Context(config["device"], config["backend"]) as context:
            (target if role == "target" else writer)(context, config)
    except (rdma.Error, OSError, RuntimeError) as error:
        sys.stdout.flush()
        sys.exit(f"rdma_ladder: {role}: {error}")
    except KeyboardInterrupt:  # it went to all processes of the terminal
        sys.exit(130)


def target(context, config):
    """Register memory and connect; then take no part until all is written, and tell what is there."""
    import numpy as np

    pd, memory = context.alloc_pd(), np.zeros(config["pages"] * config["page_size"], np.uint8)
    region, cq = pd.register(memory), context.create_cq(1)
    pairs = [pd.create_qp(cq, max_send_wr=1, max_recv_wr=1) for _ in range(config["shard"])]
    for pair, info in zip(pairs, json.loads(sys.stdin.readline())):
        pair.connect(bytes.fromhex(info))
    tell({"infos": [pair.info().hex() for pair in pairs], "memory": [region.addr, region.rkey, region.length]})
    if sys.stdin.readline():
        tell({"sum": checksum(memory)})
        sys.stdin.readline()


def tell(facts):
    """Write a line for the other process."""
    print(json.dumps(facts), flush=True)


def checksum(memory):
    """Return a number for all of the memory, which depends on where each byte is."""
    import zlib

    return zlib.crc32(memory)


def writer(context, config):
    """Write all pages a number of times, verify, and print the time."""
    import numpy as np

    from gormapy import rdma

    pd = context.alloc_pd()
    source = np.random.default_rng().integers(0, 256, config["pages"] * config["page_size"], np.uint8)
    region = pd.register(source, rdma.Access.LOCAL_WRITE)
    window = max(config["queue"], config["batch"])
    shards = []
    for number in range(config["shard"]):
        cq = context.create_cq(window)
        pair = pd.create_qp(cq, max_send_wr=window, max_recv_wr=1)
        shards.append(Shard(pair, cq, region, window, number, config))
    with subprocess.Popen(
        command("target", config), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        told = ask(process, [shard.pair.info().hex() for shard in shards])
        memory = rdma.RemoteMemory(*told["memory"])
        for shard, info in zip(shards, told["infos"]):
            shard.pair.connect(bytes.fromhex(info))
            shard.warm_up(memory)
        seconds = run(shards, memory, config)
        if ask(process, "sum")["sum"] != checksum(source):
            raise RuntimeError("the target's memory is not what was written")
        process.stdin.close()
    tell({"seconds": seconds, "ops": sum(shard.done for shard in shards)})


def ask(process, facts):
    """Write a line to the target, and read one."""
    process.stdin.write(json.dumps(facts) + "\n")
    process.stdin.flush()
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"the target has ended with status {process.wait()}")
    return json.loads(line)


class Shard:
    """A queue pair with its completion queue, and its share of the pages."""

    def __init__(self, pair, cq, region, window, number, config):
        self.pair = pair
        self.cq = cq
        self.posted = self.done = 0
        self.failure = None
        self._region = region
        self._window = window
        self._batch = config["batch"]
        self._lazy = config["lazy"]
        self._size = config["page_size"]
        self._pages = range(number, config["pages"], config["shard"])
        self._repeats = config["repeats"]
        self._cores = config["cores"]["writer"]
        self._core = self._cores[number % len(self._cores)] if self._cores else None
        self.ops = len(self._pages) * self._repeats

    def warm_up(self, memory):
        """Write once to each page of the share, so that the connection is made and the memory is there."""
        for page in self._pages:
            self.pair.post_write(self._region, memory, **self._at(page))
            self.cq.wait(PATIENCE)

    def write(self, memory):
        """Write the share, as the switches say; a failure is kept for the thread that waits."""
        try:
            if self._core is not None:
                os.sched_setaffinity(0, {self._core})
            self._write(memory)
        except Exception as error:
            self.failure = error

    def _at(self, page):
        return {"local_offset": page * self._size, "remote_offset": page * self._size, "length": self._size}

    def _write(self, memory):
        pair, region, batch, window = self.pair, self._region, self._batch, self._window
        work = (page for _ in range(self._repeats) for page in self._pages)
        left = self.ops
        while left:
            n = min(batch, left)
            while self.posted - self.done + n > window:
                self._take(self.cq.wait(PATIENCE))
            if n == 1:
                pair.post_write(region, memory, wr_id=1, **self._at(next(work)))
            else:
                self._post(n, work, memory)
            self.posted += n
            left -= n
            if not self._lazy:
                self._take(self.cq.poll(window))
        while self.done < self.posted:
            self._take(self.cq.wait(PATIENCE))

    def _post(self, n, work, memory):
        """Post a batch: one call and, with a device, one doorbell. If lazy, its last completion stands for all."""
        lazy = self._lazy
        with self.pair.batch() as posts:
            for i in range(n):
                last = i == n - 1
                posts.post_write(
                    self._region, memory, wr_id=n if lazy else 1, signaled=last or not lazy, **self._at(next(work))
                )

    def _take(self, completions):
        """Count completed requests: the number of a completion is how many requests it stands for."""
        for completion in completions:
            self.done += completion.wr_id


def run(shards, memory, config):
    """Let all shards write at once, and return the seconds that it took."""
    threads = [threading.Thread(target=shard.write, args=(memory,), daemon=True) for shard in shards]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            thread.join(EVERY if config["progress"] else None)
            if config["progress"] and thread.is_alive():
                show(shards, time.perf_counter() - begin, config)
    seconds = time.perf_counter() - begin
    for shard in shards:
        if shard.failure:
            raise shard.failure
    if config["progress"]:
        show(shards, seconds, config)
    return seconds


def show(shards, seconds, config):
    """Print a progress line."""
    print(
        progress(
            seconds,
            sum(shard.done for shard in shards),
            sum(shard.posted for shard in shards),
            sum(shard.ops for shard in shards),
            config["page_size"],
            config["ceiling"],
        ),
        flush=True,
    )


def progress(seconds, done, posted, ops, size, ceiling):
    """Return the progress line of libfabric-efa-demo; `ceiling` is what counts as 100 %, in Gbps."""
    gbps = 8e-9 * done * size / seconds
    return (
        f"[{seconds:.3f}s] WRITE: {100 * done // ops}%, ops={done}/{ops}, posted={posted}({100 * posted // ops}%), "
        f"bytes={done * size}/{ops * size}, bw={gbps:.3f}Gbps({100 * gbps / ceiling:.1f}%), "
        f"{1e-6 * done / seconds:.3f}Mpps"
    )
