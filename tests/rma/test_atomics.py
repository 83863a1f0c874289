"""Accumulates are atomic, whatever the op, the type, the window and the way."""


def test_atomics(onesided):
    onesided("atomics")
