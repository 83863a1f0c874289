"""A program of test_info.py that begins MPI itself."""

import os

import gormapy


def report_in_any_state():
    gormapy.rc.initialize = False
    from gormapy import MPI, info

    assert info.report()["state"] == "not initialized"
    MPI.Init()
    assert info.report()["state"] == "initialized" and info.report()["job"]["size"] == 1
    read, write = os.pipe()
    if os.fork() == 0:
        found = info.report()
        os.write(write, f"{found['state']}: {found['error']}; {len(info.text()) > 500}".encode())
        os._exit(0)
    assert os.wait()[1] == 0
    told = os.read(read, 1000).decode()
    assert told.startswith("forked: ") and "spawn" in told and told.endswith("True"), told
    MPI.Finalize()
    assert info.report()["state"] == "finalized" and "finalized" in info.text()
