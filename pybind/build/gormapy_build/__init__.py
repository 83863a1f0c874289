"""The build backend of gormapy (PEP 517 and 660), in the tree it builds.

Why not setuptools: the wheel's scripts are Go programs, the extension is made
by gopy and Go, a source tree may be read-only, and an unsupported platform is
to be refused before 90 MB of toolchain are fetched. What is left of a
general backend after that is writing a zip file.

How a wheel comes about: the sources are copied to a temporary folder, gopy
generates the Python binding of ``pybind/core``, the hand-written C shim of
``pybind/shim`` joins it as one cgo package, and Go links the two into one
shared object (``extension.py``). Go and the C compiler come as pinned build
requirements (``[tool.gormapy.build]`` in pyproject.toml); with
``GORMAPY_BUILD_TOOLCHAIN=system`` those on PATH are used instead.

Where the Go modules come from: a source distribution carries them in
``vendor/``, and a build from it asks no Go module proxy. A git clone has no
``vendor/`` (it would be two hundred files of other projects' code to review);
there Go fetches the modules that go.sum pins by checksum.
"""

from . import refusal


def get_requires_for_build_wheel(config_settings: object = None) -> "list[str]":
    refusal.check()
    from . import toolchain

    return toolchain.wheel_requirements()


get_requires_for_build_editable = get_requires_for_build_wheel


def get_requires_for_build_sdist(config_settings: object = None) -> "list[str]":
    refusal.check(need_headers=False)
    from . import toolchain

    return toolchain.sdist_requirements()


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: object = None) -> str:
    refusal.check()
    from . import wheel

    return wheel.write_metadata(metadata_directory)


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def build_wheel(wheel_directory: str, config_settings: object = None, metadata_directory: object = None) -> str:
    refusal.check()
    from . import wheel

    return wheel.build(wheel_directory)


def build_editable(wheel_directory: str, config_settings: object = None, metadata_directory: object = None) -> str:
    refusal.check()
    from . import wheel

    return wheel.build_editable(wheel_directory)


def build_sdist(sdist_directory: str, config_settings: object = None) -> str:
    refusal.check(need_headers=False)
    from . import sdist

    return sdist.build(sdist_directory)
