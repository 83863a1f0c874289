"""What the tests share: how to start jobs, and what may not be left behind."""
