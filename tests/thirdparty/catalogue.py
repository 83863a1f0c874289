"""The libraries that are run, and how."""

from dataclasses import dataclass

COMPARED = ("mpi4py==4.1.2", "mpich==5.0.2")


@dataclass(frozen=True)
class Program:
    """A program in the folder programs, which uses a library."""

    name: str
    requirements: tuple
    module: tuple = ()  # run by this module
    alone: bool = False  # started without a launcher, with the number of ranks as its argument
    sizes: tuple = (2, 4)

    @property
    def title(self):
        """The library and its version, for the table."""
        title = self.requirements[0].replace("==", " ")
        return f"{title}, its own tests" if self.name.startswith("tests_of_") else title


FUTURES = ("-m", "mpi4py.futures")
SCHWIMMBAD = "schwimmbad==0.4.2"

PROGRAMS = (
    Program("with_schwimmbad", (SCHWIMMBAD,)),
    Program("with_emcee", ("emcee==3.1.6", SCHWIMMBAD)),
    Program("with_zeus", ("zeus-mcmc==2.5.4",)),
    Program("with_dynesty", ("dynesty==3.1.0", SCHWIMMBAD)),
    Program("with_nautilus", ("nautilus-sampler==1.0.6", SCHWIMMBAD)),
    Program("with_ultranest", ("ultranest==4.6.3",)),
    Program("with_cobaya", ("cobaya==3.6.2",), sizes=(2,)),  # four chains take minutes on two cores, on MPICH, too
    Program("with_ptmcmcsampler", ("ptmcmcsampler==2.1.4",)),
    Program("with_ase", ("ase==3.29.0",)),
    Program("with_pshmem", ("pshmem==1.3.5",)),
    Program("with_mpilock", ("mpilock==2.2.1",)),
    Program("with_numpi", ("numpi==0.18.1",)),
    Program("with_mpiparticles", ("mpiparticles==0.1.0",)),
    Program("with_maybempi", ("maybempi==0.1.2",)),
    Program("with_mpipool", ("mpipool==2.2.1",)),
    Program("with_ezmpi", ("ezmpi==0.1.0", "dill==0.4.1")),
    Program("with_deap", ("deap==1.4.4", SCHWIMMBAD)),
    Program("with_platypus", ("platypus-opt==1.4.1",)),
    Program("with_mpi_list", ("mpi-list==0.4.0",)),
    Program("with_dlp_mpi", ("dlp-mpi==0.0.4",)),
    Program("with_distwq", ("distwq==1.3.3",)),
    Program("with_mpi4pytools", ("mpi4pytools==0.2.0",)),
    Program("with_mpi_print", ("mpi-print==0.1.0",)),
    Program("with_simplempi", ("simplempi==0.1.5",)),
    Program("with_parallel_statistics", ("parallel-statistics==0.13",)),
    Program("with_mpiplus", ("mpiplus==0.0.3",)),
    Program("with_h5py", ("h5py==3.16.0",)),
    Program("with_pylops_mpi", ("pylops-mpi==0.8.0",)),
    Program("tests_of_pylops_mpi", ("pylops-mpi==0.8.0", "pytest==8.4.2", "pytest-mpi==0.6")),
    Program("with_dask_mpi", ("dask-mpi==2026.3.0",)),
    Program("with_libensemble", ("libensemble==1.6.1",)),
    Program("with_mpisppy", ("mpi-sppy==0.14.0", "highspy==1.15.1")),
    Program("with_pytest_mpi", ("pytest-mpi==0.6", "pytest==8.4.2")),
    Program("with_treecorr", ("treecorr==5.1.4",)),
    Program("with_sweepexp", ("sweepexp==1.2.0",)),
    Program("with_westpa", ("westpa==2022.16",)),
    Program("with_yt", ("yt==4.4.3",)),
    Program("with_shift", ("shift-fft==1.1.1",)),
    Program("with_adaptive", ("adaptive==1.5.2",), module=FUTURES),
    Program("with_pypesto", ("pypesto==0.7.0",), module=FUTURES),
    Program("with_executorlib", ("executorlib==1.11.0",), alone=True),
)
