"""libEnsemble: rank 0 gives points of a generator to the workers, which evaluate them."""

import numpy as np
from libensemble import Ensemble
from libensemble.gen_funcs.sampling import uniform_random_sample
from libensemble.sim_funcs.six_hump_camel import six_hump_camel
from libensemble.specs import ExitCriteria, GenSpecs, SimSpecs

ensemble = Ensemble(parse_args=False)
ensemble.libE_specs.comms = "mpi"
ensemble.libE_specs.disable_log_files = True
ensemble.libE_specs.save_every_k_sims = 0
ensemble.sim_specs = SimSpecs(sim_f=six_hump_camel, inputs=["x"], outputs=[("f", float)])
user = {"gen_batch_size": 10, "lb": np.array([-3, -2]), "ub": np.array([3, 2])}
ensemble.gen_specs = GenSpecs(gen_f=uniform_random_sample, outputs=[("x", float, 2)], user=user)
ensemble.exit_criteria = ExitCriteria(sim_max=30)
ensemble.add_random_streams()
history, _, flag = ensemble.run()
if ensemble.is_manager:
    assert flag == 0 and history["sim_ended"].sum() >= 30
    assert np.isfinite(history["f"][history["sim_ended"]]).all()
    print("checked")
