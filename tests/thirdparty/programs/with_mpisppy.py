"""mpi-sppy solves a stochastic program by progressive hedging, its scenarios divided among the ranks."""

import mpisppy.utils.sputils as sputils
import pyomo.environ as pyo
from mpi4py import MPI
from mpisppy.opt.ph import PH

SCENARIOS = [f"scenario{k}" for k in range(4)]


def create(name, **_):
    model = pyo.ConcreteModel(name)
    demand = 10 + 5 * int(name[-1])
    model.order = pyo.Var(bounds=(0, 100))
    model.sold = pyo.Var(bounds=(0, demand))
    model.limit = pyo.Constraint(expr=model.sold <= model.order)
    model.cost = pyo.Objective(expr=model.order - 3 * model.sold)
    sputils.attach_root_node(model, 0, [model.order])
    model._mpisppy_probability = 1 / len(SCENARIOS)
    return model


options = {
    "solver_name": "appsi_highs", "PHIterLimit": 30, "defaultPHrho": 1, "linearize_proximal_terms": True, "convthresh": 1e-4, "verbose": False,
    "display_progress": False, "display_timing": False, "iter0_solver_options": {}, "iterk_solver_options": {},
}  # fmt: skip
hedging = PH(options, SCENARIOS, create)
convergence, expected, trivial = hedging.ph_main()
best = -sum(3 * min(20, 10 + 5 * k) - 20 for k in range(4)) / 4  # an order of 20
assert trivial <= best + 1e-6 and abs(expected - best) < 2, (convergence, expected, trivial, best)
assert MPI.COMM_WORLD.allreduce(expected, MPI.MAX) == expected
print("checked")
