"""A picture of the field, with the parts of the ranks."""

from .grid import part
from .report import gathered

PIXELS = 1000


def draw(solver, path):
    """Draw the field into a file, of the format that its name says; collective. OSError or ValueError on rank 0."""
    cells = gathered(solver, PIXELS)
    if cells is None:
        return
    from matplotlib.figure import Figure

    grid = solver.grid
    figure = Figure(figsize=(7, 6), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(cells, origin="lower", extent=(0, grid.imax, 0, grid.jmax), cmap="viridis")
    for coord in range(1, grid.nx):
        axes.axvline(part(grid.imax, grid.nx, coord)[0], color="white", linewidth=1)
    for coord in range(1, grid.ny):
        axes.axhline(part(grid.jmax, grid.ny, coord)[0], color="white", linewidth=1)
    for y in range(grid.ny):
        for x in range(grid.nx):
            at = part(grid.imax, grid.nx, x)[0], part(grid.jmax, grid.ny, y)[0]
            axes.annotate(f" rank {y * grid.nx + x}", at, color="white", va="bottom")
    axes.set(xlabel="i", ylabel="j", title=f"{grid.imax} x {grid.jmax} cells on {grid.nx} x {grid.ny} ranks")
    figure.colorbar(image, ax=axes)
    figure.savefig(path)
