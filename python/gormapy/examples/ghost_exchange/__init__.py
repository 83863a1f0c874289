"""Smooth a field on a grid of ranks that exchange halos, in several ways and with several ways to keep the memory.

    mpiexec -n 4 python -m gormapy.examples.ghost_exchange -x 2 -y 2 -i 2000 -j 2000 -h 2 -t -c -I 100 --method fence

Every iteration replaces each cell by the mean of itself and its four neighbours. A rank owns a part of the grid and
keeps a halo around it: copies of its neighbours' cells (ghost cells), or, at the edge of the grid, of its own
outermost cells, so that nothing flows across. `--help` has all options.

Read the files in this order:

- `options`: the command line, which is that of AMD's GhostExchange with a few long options more
- `grid`: which rank has which cells
- `strips`: which cells are sent to which neighbour, and their place there
- `fields`: the memory that the cells are in
- `methods`: a file for each way to move the strips
- `kernel`: the stencil
- `solver`: the iterations and their timers
- `report`, `picture`: the printed and drawn results; `total`: sums that don't depend on the number of ranks
"""
