"""ASE relaxes the images of a nudged elastic band, each of them on ranks of its own."""

from mpi4py import MPI  # first: ASE takes the communicator of an mpi4py that is loaded

# isort: split
from ase.build import add_adsorbate, fcc100
from ase.calculators.emt import EMT
from ase.constraints import FixAtoms
from ase.mep import NEB
from ase.optimize import BFGS
from ase.parallel import world

assert world.size == MPI.COMM_WORLD.size > 1
first = fcc100("Al", size=(2, 2, 2))
first.set_constraint(FixAtoms(mask=[atom.tag > 1 for atom in first]))
add_adsorbate(first, "Au", 1.7, "hollow")
first.center(axis=2, vacuum=4.0)
last = first.copy()
last[-1].x += last.get_cell()[0, 0] / 2
images = [first, *(first.copy() for _ in range(world.size)), last]
for image in images:
    image.calc = EMT()
band = NEB(images, parallel=True)
band.interpolate()
BFGS(band, logfile=None).run(fmax=0.5, steps=20)
energies = band.energies
assert energies[1:-1].max() > min(energies[0], energies[-1])
assert abs(world.sum(energies.sum()) - world.size * energies.sum()) < 1e-9
print("checked")
