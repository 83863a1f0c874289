"""Fields in the memory of a GPU, by CuPy.

The stencil and the boundary condition are computed there. Halos go through the memory of the host, since no network and
no other process can access a device's memory from here: the cells that neighbours need are copied to the fields on the
host, any method exchanges those, and the received cells are copied back. So all methods and memories work as without a
device, and results are equal to the last bit: the stencil adds in the same order, and nothing in it can be fused.
"""

from .solver import Solver


class DeviceSolver(Solver):
    """A solver with both fields on a device too; `here` tells whether the current one is newer on the host."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        import cupy

        self.cupy = cupy
        self.device = [cupy.zeros(self.grid.shape) for _ in range(2)]
        self.here = True

    @property
    def x(self):
        """The field as it is now, with its halo, on the host. Write to it only before the next iteration."""
        if not self.here:
            self.fields[self.k][...] = self.device[self.k].get()
            self.here = True
        return self.fields[self.k]

    def _there(self):
        """Return the current field on the device."""
        if self.here:
            self.device[self.k][...] = self.cupy.asarray(self.fields[self.k])
            self.here = False
        return self.device[self.k]

    def _boundary(self):
        self.grid.enforce_boundary(self._there())
        self._finish()

    def _exchange(self):
        host, device = self.fields[self.k], self._there()
        for strip in self.exchange.strips:
            host[strip.out] = device[strip.out].get()
        self.exchange.update(self.k)
        for strip in self.exchange.strips:
            device[strip.into] = self.cupy.asarray(host[strip.into])
        self._finish()

    def _stencil(self):
        x, new, w, cupy = self._there(), self.device[1 - self.k], self.grid.width, self.cupy
        rows, length = x.shape
        x, new = x.reshape(-1), new.reshape(-1)
        begin, end = w * length + w, (rows - w) * length - w  # as numpy_kernel, in one go
        mean = new[begin:end]
        cupy.add(x[begin:end], x[begin - 1 : end - 1], out=mean)
        for offset in (1, -length, length):
            cupy.add(mean, x[begin + offset : end + offset], out=mean)
        cupy.divide(mean, 5.0, out=mean)
        self._finish()

    def _finish(self):
        """Wait for the device, so that its time is counted where it is spent."""
        self.cupy.cuda.Device().synchronize()


def missing():
    """Return why there can be no field on a device, or None."""
    try:
        import cupy
    except ImportError:
        return "CuPy is not installed: pip install cupy-cuda12x, or cupy-cuda13x, for an NVIDIA GPU"
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except Exception as error:
        return f"CuPy finds no device: {error}"
    return None if count else "CuPy finds no device"
