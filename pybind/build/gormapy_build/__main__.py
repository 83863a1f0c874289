"""What the Makefile asks of the backend: python -m gormapy_build COMMAND."""

from __future__ import annotations

import sys

from . import refusal


def main(arguments: list[str]) -> None:
    command = arguments[0] if len(arguments) == 1 else ""
    refusal.check()
    from . import project, toolchain, wheel

    if command == "in-place":
        wheel.build_in_place("auto")
    elif command == "requires":
        print("\n".join(toolchain.wheel_requirements("auto")))
    elif command == "env":
        # For a shell: the toolchain that in-place uses, to run go test and go vet with.
        work = project.ROOT / "build" / f"work-{sys.implementation.cache_tag}"
        found = toolchain.find(work, project.ROOT, "auto")
        for name in ("PATH", "CC", "GOFLAGS", "GOTOOLCHAIN", "GOCACHE", "GOMODCACHE", "GOPROXY"):
            if name in found.env:
                value = found.env[name].replace("'", "'\\''")
                print(f"export {name}='{value}'")
    else:
        raise SystemExit("usage: python -m gormapy_build in-place|requires|env")


main(sys.argv[1:])
