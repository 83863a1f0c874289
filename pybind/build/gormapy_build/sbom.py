"""The software bill of materials of a wheel (CycloneDX 1.6), in the folder that PEP 770 names."""

from __future__ import annotations

import hashlib
import json
import uuid
from pathlib import Path
from typing import Any

from . import contents, project
from .toolchain import GLIBC, Toolchain

# The licences of what can come to be in the binaries. THIRD-PARTY-LICENSES has their texts.
LICENSES = {
    "github.com/go-python/gopy": "BSD-3-Clause",
    "golang.org/x/sys": "BSD-3-Clause",
}


def document(tools: Toolchain, machine: str, extension: Path, launcher: Path) -> bytes:
    """Describes the two binaries by what Go has written into them, and the tools that made them."""
    release = f"pkg:pypi/gormapy@{project.version()}"
    go, modules = _linked(tools, extension, launcher)
    parts = [_library("std", go, f"pkg:golang/std@{go}", "BSD-3-Clause", "Go's run-time and standard library")]
    for path, version in sorted(modules.items()):
        if path not in LICENSES:
            raise SystemExit(f"sbom.py has no licence of {path}, which is linked: add it, and THIRD-PARTY-LICENSES.")
        parts.append(_library(path, version, f"pkg:golang/{path}@{version}", LICENSES[path], "a Go module"))
    files = [_file("gormapy/_gormapy.abi3.so", extension), _file("gormapy/_bin/mpiexec", launcher)]
    bom = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, release + machine + str(files))}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": release,
                "name": "gormapy",
                "version": project.version(),
                "purl": release,
                "licenses": [_license(project.pyproject()["project"]["license"])],
            },
            "tools": {"components": [_tool(pin) for pin in _pins()]},
            "properties": [
                {"name": "gormapy:machine", "value": machine},
                {"name": "gormapy:compilers", "value": tools.ident},
                {"name": "gormapy:glibc", "value": f"{GLIBC} or later, linked dynamically by the extension alone"},
            ],
        },
        "components": [*parts, *files],
        "dependencies": [{"ref": release, "dependsOn": [part["bom-ref"] for part in parts]}],
    }
    return (json.dumps(bom, indent=1) + "\n").encode()


def _linked(tools: Toolchain, *binaries: Path) -> tuple[str, dict[str, str]]:
    """Go's version, and those of the modules of which the binaries have packages."""
    go, modules = "", {}
    for binary in binaries:
        first, *lines = tools.run([tools.go, "version", "-m", binary], binary.parent).splitlines()
        go = first.rpartition(": ")[2].removeprefix("go")
        for line in lines:
            match line.split():
                case ["dep", path, version, *_]:
                    modules[path] = version
    return go, modules


def _pins() -> list[str]:
    pins = project.pyproject()["tool"]["gormapy"]["build"]
    return [*pins["generator"], *pins["toolchain"]]


def _tool(pin: str) -> dict[str, Any]:
    name, _, version = pin.partition("==")
    digest = {"name": "gormapy:contents-sha256", "value": contents.pinned(name)}
    return {
        "type": "application",
        "name": name,
        "version": version,
        "purl": f"pkg:pypi/{name}@{version}",
        "properties": [digest],
    }


def _library(name: str, version: str, purl: str, license: str, description: str) -> dict[str, Any]:
    return {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "purl": purl,
        "description": description,
        "licenses": [_license(license)],
    }


def _file(name: str, path: Path) -> dict[str, Any]:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return {"type": "file", "bom-ref": name, "name": name, "hashes": [{"alg": "SHA-256", "content": digest}]}


def _license(identifier: str) -> dict[str, Any]:
    return {"license": {"id": identifier}}
