"""The programs of test_support.py."""

from rankside import rank, world


def timeout_shows_what_every_rank_waits_for():
    def forsaken():
        world.recv(source=1 - rank, tag=77)

    forsaken()


def wait_records_say_since_when():
    world.recv(source=1 - rank)
