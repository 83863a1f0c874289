package launch

// Version is the version that --version prints; the build sets it to the package's.
var Version = "0.1.0"

const help = `usage: mpiexec [options] PROGRAM [arguments] [: [options] PROGRAM [arguments]]...

Runs PROGRAM as the ranks of one MPI job on this host, or on several. Several
programs, with a ":" between them, are one job together: their ranks are numbered
in that order. Programs for gormapy and programs for MPICH can be run,
but not as one job.

For each program:
  -n, -np, -c N            number of ranks (default 1)
  -env NAME VALUE          set an environment variable for its ranks
  -x NAME[=VALUE]          the same; without a value the launcher's is passed on
  -wdir DIR                working directory of its ranks

For the whole job, before the first program:
  -genv NAME VALUE         set an environment variable for all ranks
  -l, --tag-output         put the rank before each line of output
  --merge-stderr-to-stdout send the ranks' standard error where their output goes
  --output-dir DIR         write what each rank says to DIR/rank.N.out and
                           DIR/rank.N.err, instead of here
  --bind-to none|core      let ranks run on any CPU (default), or each on a core of
                           those that the launcher may use, in turn
  --shared-arrays          have NumPy make larger arrays in memory that the other
                           ranks of the host map: the kernel copies less
  --trace FILE             record calls, messages, one-sided operations and waits
                           of all ranks; FILE is for https://ui.perfetto.dev and
                           gormapy.plot
  --check                  find races and misuse of one-sided communication, and
                           say which lines, why, what to do; --check=json:FILE
                           writes records, --check=exact looks at each load and
                           store, however many there are
  --unkind[=SEED]          one-sided operations take effect as late as MPI allows,
                           in any order; a job that fails says its seed;
                           --unkind=separate keeps two copies of windows, too
  --summary                at the end, a table of the time that each call took
  --timeout S              after S seconds say what each rank does, stop, status 124
                           (GORMAPY_TIMEOUT=S is the same, also without mpiexec)
  --enable-recovery        go on when a rank fails, for programs that use Revoke,
                           Agree and Shrink, and in jobs that it spawns;
                           --with-ft ulfm and -disable-auto-cleanup are the same
  -v, --verbose            say which rank is which process, on which CPUs, what was
                           ignored, and at the end what each rank used
  -V, --version            print the version
  -h, --help               print this

Standard input goes to rank 0. Ctrl-C, SIGTERM and SIGHUP reach every rank; what
has not ended 0.8 s later is killed (at once on a second Ctrl-C). When a rank fails,
the others are stopped and its exit status is mpiexec's: 128 + the number of the
signal if it was killed by one, the code if it called Abort. With --enable-recovery
only Abort does that; mpiexec's status is then that of the first rank that ended
with one, and 0 if those that were not killed by signals succeed. Other statuses:
1 the job could not be started, 2 wrong usage, 124 time-out, 126 not executable,
127 not found.

Options of other launchers: one dash or two make no difference.
  without effect, as they ask for what is always so:
    --oversubscribe --allow-run-as-root -host localhost -envall -genvall -envlist L
    -genvlist L -iface X -localonly -s 0 --get-stack-traces -q
  without effect, as they are about placement or for Open MPI only:
    --map-by X --rank-by X --use-hwthread-cpus --mca A B --prefix DIR --tune FILE
  without effect, as -v says it:
    --report-bindings --display-map -print-rank-map -print-all-exitcodes
  -ppn N, -N N             nothing, if the ranks are not more than N
All others are refused, with what to use instead where there is something.

Several hosts, before the first program:
  -hosts, -host, -H LIST   run on these hosts: a,b or a:4,b:4 (ranks on each)
  -hostfile, -f FILE       the same, with a host in each line: a:4 or a slots=4
  -ppn N                   N ranks on each host
  -launcher, -launcher-exec PROGRAM
                           what starts processes there, in place of ssh
For that mpiexec hands over to a launcher that is installed, and says to which:
in an allocation of Slurm or Flux to srun or flux, else to mpiexec.hydra (pip
install mpich) or prterun (Open MPI 5). All options work there, too. The files of
--output-dir are on the hosts of the ranks.
`
