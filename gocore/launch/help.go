package launch

// Version is what --version says; the build sets it to the package's.
var Version = "0.1.0"

const help = `usage: mpiexec [options] PROGRAM [arguments]

Runs PROGRAM as the ranks of one MPI job on this host.

  -n, -np, -c N            number of ranks (default 1)
  -l, --tag-output         put the rank before each line of output
  --merge-stderr-to-stdout send the ranks' standard error where their output goes
  --timeout S              after S seconds say what each rank does, stop, status 124
  -env, -genv NAME VALUE   set an environment variable for the ranks
  -x NAME[=VALUE]          the same; without a value the launcher's is passed on
  -wdir DIR                working directory of the ranks
  -v, --verbose            say which process is which rank and what was ignored
  -V, --version            print the version
  -h, --help               print this

One dash or two make no difference. For the sake of existing scripts these are
accepted and have no effect: -host localhost, --oversubscribe, --mca A B,
--allow-run-as-root, --bind-to X, --map-by X, --rank-by X, --report-bindings,
--use-hwthread-cpus, -ppn N, -genvall, -q.

Standard input goes to rank 0. Ctrl-C, SIGTERM and SIGHUP reach every rank; what
has not ended 1 s later is killed (at once on a second Ctrl-C). When a rank fails,
the others are stopped and its exit status is mpiexec's: 128 + the number of the
signal if it was killed by one, the code if it called Abort. Other statuses:
2 wrong usage, 124 time-out, 126 not executable, 127 not found.

It serves one host; jobs on several hosts are not supported yet.
`
