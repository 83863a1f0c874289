"""A client that sends itself a signal: write_cpu_client.py ADDRESS connect|request SIGNAL."""

import os
import sys

from gormapy import rdma
from gormapy.examples.write_cpu.address import Address
from gormapy.examples.write_cpu.client import MT19937_64, Client, prepare

text, last, number = sys.argv[1:]
address = Address.parse(text)
made = Client(rdma.Context(backend=address.backend), address)
made.connect()
if last == "request":
    made.request(prepare(16 << 20, 1, MT19937_64(1)))
os.kill(os.getpid(), int(number))
