"""What is recorded is what the program did: calls, messages, operations, epochs, exactly."""

from collections import Counter

import numpy as np
import pytest
from support.programs import beside

program = beside(__file__)


@pytest.mark.parametrize("n", [1, 2, 4, 7])
def test_messages_are_joined_with_their_receives(recorded, n):
    trace = recorded(n, program.messages_are_joined_with_their_receives)
    messages = trace.messages
    assert not np.isnan(messages["sent"]).any() and not np.isnan(messages["received"]).any()
    assert (messages["sent"] <= messages["received"]).all()
    expected = Counter()
    for rank in range(n):
        to = (rank + 1) % n
        expected.update((rank, to, tag, 80) for tag in (0, 1, 2, 60))
        expected.update({(rank, to, 11, 40): 4, (rank, to, 20, 8): 1, (rank, to, 30, 800_000): 1})
    expected.update((0, 0, 40, 8 * k) for k in (1, 2, 3))
    found = Counter(tuple(m) for m in messages[["source", "dest", "tag", "bytes"]].tolist() if m[2] != 50)
    assert found == expected
    pickled = messages[messages["tag"] == 50]
    assert sorted(zip(pickled["source"], pickled["dest"])) == sorted((r, (r + 1) % n) for r in range(n))
    nobody = trace.calls[trace.calls["peer"] == -2]  # PROC_NULL
    assert Counter(nobody["name"].tolist()) == {"Isend": n, "Recv": n} and not nobody["bytes"].any()
    # each received message was received inside of a call of its receiver, and sent inside of one of its sender
    for message in messages:
        for rank, at in ((message["source"], message["sent"]), (message["dest"], message["received"])):
            calls = trace.calls[trace.calls["rank"] == rank]
            assert ((calls["begin"] <= at) & (at <= calls["end"])).any()


def test_messages_of_one_pair_and_tag_are_joined_in_order(recorded):
    # received with a smaller tag first, by requests that are waited for in another order
    trace = recorded(2, program.messages_of_one_pair_and_tag_are_joined_in_order)
    of = trace.messages[trace.messages["tag"] == 5]
    of = of[np.argsort(of["sent"])]
    assert of["bytes"].tolist() == [8, 16, 24, 32, 40]
    # completed in the order of the waits: 5th, 3rd, 1st, 2nd, 4th
    assert np.argsort(of["received"]).tolist() == [4, 2, 0, 1, 3]


@pytest.mark.parametrize("n", [1, 3])
def test_every_call_is_recorded_once(recorded, n):
    trace = recorded(n, program.every_call_is_recorded_once)
    expected = Counter(
        "Barrier Barrier Bcast Allreduce Gather Allgatherv Ibarrier Request.Wait bcast barrier Dup Free Irecv Send "
        "Request.Wait Send Finalize".split()
    )
    for rank in range(n):
        mine = trace.calls[trace.calls["rank"] == rank]
        assert Counter(mine["name"].tolist()) == expected
        assert mine["finished"].all()
        assert mine["failed"].sum() == 1
        assert mine["name"][mine["failed"]].tolist() == ["Send"]
        assert (mine["begin"][1:] >= mine["end"][:-1]).all()  # one after the other, none in another

        def only(name, mine=mine):
            found = mine[(mine["name"] == name) & ~mine["failed"]]
            assert len(found) == 1
            return found[0]

        assert only("Bcast")["bytes"] == 80 and only("Bcast")["peer"] == n - 1
        assert only("Allreduce")["bytes"] == 80 and only("Allreduce")["peer"] == -3
        assert only("Gather")["peer"] == 0 and only("Gather")["bytes"] == 80
        assert only("Allgatherv")["bytes"] == 16
        assert only("Send")["bytes"] == 16 and only("Send")["tag"] == 2
        world, dup = mine["comm"][mine["name"] == "Barrier"]
        assert world != dup and world == only("Bcast")["comm"]
    # a communicator has the same number at all ranks
    assert len(np.unique(trace.calls["comm"][trace.calls["name"] == "Barrier"])) == 2


@pytest.mark.parametrize("n", [1, 2, 4, 7])
@pytest.mark.parametrize("make", ["Allocate", "Create"])
def test_operations_and_epochs(recorded, n, make):
    trace = recorded(n, program.operations_and_epochs, make)
    operations, epochs = trace.operations, trace.epochs
    assert len(np.unique(operations["window"])) == 1
    window = int(operations["window"][0])
    assert trace.window_ranks[window] == list(range(n))
    for rank in range(n):
        right, left = (rank + 1) % n, (rank - 1) % n
        mine = operations[operations["rank"] == rank]
        assert mine[["name", "target", "disp", "bytes"]].tolist() == [
            ("Win.Put", right, 40, 80),
            ("Win.Get", left, 8, 16),
            ("Win.Accumulate", right, 160, 24),
            ("Win.Fetch_and_op", right, 240, 8),
            ("Win.Rput", right, 320, 32),
            ("Win.Get", right, 400, 16),
            ("Win.Compare_and_swap", right, 480, 8),
        ]
        assert mine["span"].tolist()[:5] == [80, 16, 24, 8, 32]
        assert mine["span"][5] == 32  # two doubles with two between them: 4 * 8
        of = epochs[epochs["rank"] == rank]
        assert sorted(of[["kind", "target", "operations"]].tolist()) == sorted(
            [
                ("fence", -1, 2),
                ("fence", -1, 0),
                ("lock", right, 2),
                ("lock_all", -1, 2),
                ("access", -1, 1),
                ("exposure", -1, 0),
            ]
        )
        assert of["closed"].all()
        kinds = [str(epochs["kind"][i]) for i in mine["epoch"]]
        assert kinds == ["fence", "fence", "lock", "lock", "lock_all", "lock_all", "access"]
        assert (trace.calls["name"][mine["call"]] == mine["name"]).all()


def test_waiting_is_told_from_working(recorded):
    trace = recorded(2, program.waiting_is_told_from_working)
    recv = trace.calls[trace.calls["name"] == "Recv"][0]
    assert 0.25 < recv["wait"] <= recv["end"] - recv["begin"]
    assert recv["waits_for"] == 0
    send = trace.calls[trace.calls["name"] == "Send"][0]
    assert send["wait"] < 0.1
    assert (trace.calls["wait"] <= (trace.calls["end"] - trace.calls["begin"]) * 1.01 + 1e-6).all()


def test_threads_have_lanes_of_their_own(recorded):
    trace = recorded(2, program.threads_have_lanes_of_their_own)
    of = trace.calls[trace.calls["name"] == "Sendrecv"]
    for rank in range(2):
        mine = of[of["rank"] == rank]
        assert Counter(Counter(mine["thread"].tolist()).values()) == {20: 3}
        for thread in np.unique(mine["thread"]):
            calls = mine[mine["thread"] == thread]
            assert (calls["begin"][1:] >= calls["end"][:-1]).all()
            assert len(np.unique(calls["tag"])) == 1
            # waits went to the thread that waited
            assert (calls["wait"] <= (calls["end"] - calls["begin"]) * 1.01 + 1e-6).all()
    assert len(trace.messages) == 2 * 3 * 20
    assert not np.isnan(trace.messages["received"]).any()


def test_messages_over_a_network(recorded):
    trace = recorded(2, program.messages_are_joined_with_their_receives, env={"GORMAPY_FABRIC": "tcp"})
    assert not np.isnan(trace.messages["received"]).any()
    assert len(trace.messages) == 2 * (3 + 4 + 1 + 1 + 1 + 1) + 3


def test_error_handlers_hold_while_a_program_is_recorded(recorded):
    recorded(1, program.error_handlers_hold_while_a_program_is_recorded)
