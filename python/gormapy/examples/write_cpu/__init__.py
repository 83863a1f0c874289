"""Write random data into the memory of another process by RDMA, page by page: server and client.

    python -m gormapy.examples.write_cpu [--backend tcp|shm|verbs|ofi] [--once]      the server prints an ADDRESS
    python -m gormapy.examples.write_cpu ADDRESS [page_size num_pages]               the client

It is `16_write_cpu` of libfabric-efa-demo with the same messages, data and lines of output. The client registers
two regions of 16 MiB and sends their addresses and keys (CONNECT), then what it wants (RANDOMFILL): a seed, a page
size and a list of pages. The server makes the data, the numbers of std::mt19937_64 for the seed and for the seed
plus one, and writes it into those pages of the two regions; the client's program takes no part in that. A write
of nothing with immediate data 0x123 tells the client, which makes the same data and compares.

What is different, and why:

- The demo puts the immediate data on its last write, but nothing promises that writes become visible in their
  order (EFA: only that sends do). Here all writes have completed before the immediate data is sent.
- The demo's server stops at a page outside of the client's memory. Here it answers with a message of its own
  (REFUSED), and serves on. It serves any number of clients, also at once, and outlives those that die.
- All numbers in messages are checked, such as the 2040 pages that fit into a message.
- Queue pairs know their peer by an exchange beforehand, which the datagram endpoints of EFA don't need: the address
  that the server prints is that of a socket where this happens (`address`), of any length. It stays open, and its
  end is how either side learns that the other is gone. The 32 bytes for the client's address in CONNECT are the
  SHA-256 of what the client sent there.
"""
