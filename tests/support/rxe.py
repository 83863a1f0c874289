"""How slow the machine is: the guest of tests/rdma is an emulator."""

import os

SLOW = 5 if os.environ.get("RXE_GUEST") else 1
