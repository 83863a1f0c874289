"""The version of gormapy, read by the package, its metadata and the build."""

__version__ = "0.1.0"
