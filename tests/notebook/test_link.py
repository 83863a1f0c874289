"""Messages between the kernel and the ranks."""

import os
import socket

from gormapy._resident import link


def test_descriptors_that_come_are_not_inherited():
    """A program that a rank or the kernel starts must not keep the other's end of a pipe open."""
    mine, other = socket.socketpair()
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    with mine, other:
        link.send(mine, "take", [b"abc"], fds=[writing, reading])
        reader = link.Reader(other)
        while (message := reader.take()) is None:
            reader.fill()
    os.close(reading), os.close(writing)
    assert message.kind == "take" and [bytes(p) for p in message.payloads] == [b"abc"]
    assert len(reader.fds) == 2
    assert not any(os.get_inheritable(fd) for fd in reader.fds)
    for fd in reader.fds:
        os.close(fd)
