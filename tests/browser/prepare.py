"""Install Chromium from the distribution where that is possible; the tests say why they are skipped where it is not."""

import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from support.chromium import find as chromium


def main():
    """Install what is missing, or say why not."""
    if chromium():
        return
    if os.getuid() != 0 or not shutil.which("apt-get"):
        print("There is no Chromium on PATH, and only root on Debian or its relatives can have it installed here.")
        return
    print("installing chromium", flush=True)
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "-qy", "--no-install-recommends", "chromium"]
    for command in (install, ["apt-get", "update", "-q"], install):
        try:
            done = subprocess.run(
                command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=400
            )
        except subprocess.TimeoutExpired:
            sys.exit(f"{' '.join(command)} did not end within 400 s")
        if chromium():
            return
    print(f"{' '.join(install)} did not bring a Chromium:\n{done.stdout[-1000:]}{done.stderr[-1000:]}")


if __name__ == "__main__":
    main()
