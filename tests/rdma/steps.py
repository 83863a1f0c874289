"""The steps of ``make test-rdma``: what runs where RDMA devices are.

A step's command runs in bash at the top of the tree. Python is ``$PYTHON``, the
Go tests are ``$TESTS/NAME.test``.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """One thing to run, and the seconds that it may take (in the guest: 20 times slower than outside)."""

    name: str
    command: str
    limit: int


#: Test binaries to build: their name, and the package. Those of ``-asan`` are built with the address sanitizer.
GO_TESTS = {
    "ibverbs": "./gocore/ibverbs",
    "verbs": "./gocore/fabric/verbs",
    "ibverbs-asan": "./gocore/ibverbs",
    "verbs-asan": "./gocore/fabric/verbs",
    "ofi": "./gocore/fabric/ofi",
}

STEPS = [
    Step("devices", "ibv_devinfo | grep -E 'hca_id|transport|state|active_mtu'", 30),
    Step("ibverbs", "cd gocore/ibverbs && $TESTS/ibverbs.test -test.v -test.run Device", 120),
    Step("transport", "cd gocore/fabric/verbs && $TESTS/verbs.test -test.v -test.run Device", 400),
    Step("mpi", "$PYTHON -m pytest -v -rA --durations=0 -p no:cacheprovider tests/rdma", 500),
    Step("killed peer", "$PYTHON tests/rdma/killed_peer.py", 150),
    Step(
        "mpi4py's tests",
        "$PYTHON -m pytest -v -p no:cacheprovider --fabric verbs tests/conformance/test_mpi4py_tests.py::test_short_windows",
        300,
    ),
    Step(
        "gormapy.rdma",
        "$PYTHON -m pytest -v -p no:cacheprovider -m verbs tests/rdma_api/test_{operations,refused_requests,lifetimes}.py",
        400,
    ),
    Step("address sanitizer", "cd gocore/ibverbs && $TESTS/ibverbs-asan.test -test.v", 120),
    Step(
        "sanitized transport",
        "cd gocore/fabric/verbs && $TESTS/verbs-asan.test -test.v"
        " -test.run 'DeviceLongPut|DeviceKilled|SixtyFour|FailedPiece|NoFlush|PartialPost|NoBuffers|LongOperations|Close|Choice'",
        240,
    ),
    Step("beside perftest", "$PYTHON tests/rdma/beside_perftest.py", 400),
    Step(
        "libfabric",
        "cd gocore/fabric/ofi && $TESTS/ofi.test -test.v -test.run "
        "'(Processes|KilledPeer)/verbs|Conformance/verbs/ranks=2/(messages|runs|fetch|wrong|closed)'",
        300,
    ),
    Step(
        "examples",
        "$PYTHON -m gormapy.examples.simple_interchange --backend verbs && "
        "$PYTHON -m pytest -v -p no:cacheprovider -m verbs "
        "tests/examples/test_write_cpu.py::test_says_what_the_original_says",
        400,
    ),
]
