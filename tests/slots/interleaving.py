"""Runs the classes of gormapy.slots under every interleaving of their accesses to shared memory.

A process is a function that uses the real classes; `worddoubles.py` gives them words and memory whose every access
is a step of the explorer, and `replay.py` says what a process does next, by what its accesses have returned. A
state is the content of the memory and where each process is, within an access of several steps, too. The search
is depth first over all states, and does not follow a state twice: two orders of independent accesses meet in one. The
schedules are counted all the same. Nothing is left out unless `preemptions` says so: it bounds how often a
process that could go on is interrupted.

Found are: an exception that a process does not expect, an end that the check refuses, a deadlock (processes are
left and none of them can go on), a livelock (a state comes back, or a process makes more accesses than can be right).

Time does not pass. A wait ends by what it waits for, or, as the real one does, by the end of all its peers; so a
wake-up that is lost is a deadlock. But who died may have changed a word and not rung, and there are no bells for
deaths: time-outs, and the looks that a wait without one takes now and then, are there for that. So when nothing else
can happen, a process that waits may time out or look, once for each death. `early` lets so many waits of a run
time out at any moment.

A process may die before any of its steps, up to `deaths` of them in a run; nothing may rest on a death to come. One
that has returned is gone for the others like one that died.

The steps of a wait are those of gocore/mpi/word.go and gocore/engine/wait.go: look; become a sleeper and read the
doorbell; look again; see whether the peers are gone, and if so look a last time; sleep until the bell rings. Reading
the bell is one step with becoming a sleeper, and ringing it is one step, which is more than there is: those
two have an interleaving test of their own (gocore/job/bell_interleave_test.go). What is copied is copied in two steps.
"""

from replay import Ended, Livelock, Process

# Phases of a wait.
LOOK, ANNOUNCE, LOOK_AGAIN, CHECK, SLEEP, LAST_LOOK, RESULT = range(7)
RUNG = 10  # added to the phase of a sleeper whose bell has rung
SLEEPERS = (LOOK_AGAIN, CHECK, SLEEP)

GONE = "all peers are gone"  # what a wait returns that can't be fulfilled


class Died:
    """The result of a process that died."""

    def __repr__(self):
        return "died"


DIED = Died()


class Fault(Exception):
    """What the explorer found."""


class Result:
    """Counts of a search; `fault` says what is wrong, with the schedule that leads there, None if nothing is."""

    def __init__(self):
        self.states = self.schedules = 0
        self.fault = None

    def __repr__(self):
        return f"{self.schedules} schedules, {self.states} states"


class Ending:
    """What is left at the end of a schedule: the results of all processes, and the memory."""

    def __init__(self, results, memory):
        self.results, self._memory = results, memory

    def word(self, address):
        """Return what a word has."""
        return _word(self._memory, address)


def _word(memory, address):
    return int.from_bytes(memory[address : address + 8], "little", signed=True)


def _with_word(memory, address, value):
    return memory[:address] + value.to_bytes(8, "little", signed=True) + memory[address + 8 :]


# A state is (memory, positions, past): a position is (node, phase, what the phase needs), None when the process has
# died; past is (rank that ran last, preemptions, early time-outs, time-outs of each process), as far as it matters.


class Explorer:
    """A search: the memory at the beginning, a function for each process, and what a schedule may have."""

    def __init__(self, memory, functions, check, deaths=0, mortal=(), early=0, preemptions=None):
        self._processes = [Process(rank, function) for rank, function in enumerate(functions)]
        self._check, self._deaths, self._mortal = check, deaths, mortal
        self._early, self._preemptions = early, preemptions
        first = tuple((process.start(), LOOK, None) for process in self._processes)
        self._first = (bytes(memory), first, (None, 0, 0, (0,) * len(functions)))
        self._endings = {}

    def explore(self):
        """Follow all schedules, and return what was found."""
        result = Result()
        counts = {}  # state -> schedules from there to an end; None while it is on the stack
        stack = []
        try:
            self._enter(self._first, counts, stack)
            while stack:
                frame = stack[-1]
                state, choices, total, _ = frame
                if choices:
                    frame[3] = choices.pop()
                    following = self._do(state, frame[3])
                    if following not in counts:
                        self._enter(following, counts, stack)
                    elif counts[following] is None:
                        raise Fault("livelock: the schedule comes back to a state that it has been in")
                    else:
                        frame[2] += counts[following]
                else:
                    counts[state] = total
                    stack.pop()
                    if stack:
                        stack[-1][2] += total
            result.schedules = counts[self._first]
        except (Fault, Livelock) as fault:
            result.fault = f"{fault}\n{self._story(stack)}"
        result.states = len(counts)
        return result

    def _enter(self, state, counts, stack):
        counts[state] = None
        choices = self._choices(state)
        stack.append([state, choices, 0 if choices else 1, None])

    def _has_timeout(self, rank, positions):
        return self._processes[rank].access(positions[rank][0])[3] is not None

    def _ended(self, positions, rank):
        return positions[rank] is None or type(self._processes[rank].access(positions[rank][0])) is Ended

    def _gone(self, positions, ranks):
        return bool(ranks) and all(self._ended(positions, rank) for rank in ranks)

    def _seen(self, memory, positions):
        """Return all that a process may wait for by looking again and again."""
        return memory, tuple([self._ended(positions, rank) for rank in range(len(positions))])

    def _runnable(self, state, rank):
        memory, positions, _ = state
        position = positions[rank]
        if position is None:
            return False
        node, phase, _ = position
        access = self._processes[rank].access(node)
        if type(access) is Ended:
            return False
        if access[0] == "nap":
            return access[1] != self._seen(memory, positions)
        return phase != SLEEP or self._gone(positions, access[4])

    def _choices(self, state):
        _, positions, (last, preempted, early, late) = state
        ranks = range(len(positions))
        left = [r for r in ranks if positions[r] and type(self._processes[r].access(positions[r][0])) is not Ended]
        if not left:
            self._end(state)
            return []
        run = [r for r in left if self._runnable(state, r)]
        if self._preemptions is not None and preempted >= self._preemptions and last in run:
            run = [last]
        choices = [("run", r) for r in run]
        asleep = [r for r in left if positions[r][1] == SLEEP]
        dead = positions.count(None)
        if not choices:
            choices = [("time out", r) for r in asleep if late[r] < dead]
            if not choices:
                where = ", ".join(f"{r} at {self._processes[r].access(positions[r][0])}" for r in left)
                raise Fault(f"deadlock: nobody can go on; {where}")
        elif early < self._early:
            choices += [("time out early", r) for r in asleep if self._has_timeout(r, positions)]
        if dead < self._deaths:
            choices += [("die", r) for r in left if r in self._mortal]
        return choices

    def _end(self, state):
        memory, positions, _ = state
        ends = tuple(None if p is None else p[0] for p in positions)
        key = ends, memory
        if key not in self._endings:
            results = [DIED if n is None else p.access(n) for n, p in zip(ends, self._processes)]
            for rank, end in enumerate(results):
                if end is not DIED and end.error is not None:
                    raise Fault(f"rank {rank} raised {end.error!r}")
            results = [end if end is DIED else end.value for end in results]
            try:
                self._check(Ending(results, memory))
            except AssertionError as error:
                raise Fault(f"refused: {results}: {error}") from None
            self._endings[key] = True

    def _do(self, state, choice):
        what, rank = choice
        memory, positions, (last, preempted, early, late) = state
        positions = list(positions)
        if what == "die":
            positions[rank] = None
            return memory, tuple(positions), (last, preempted, early, late)
        if what != "run":
            positions[rank] = (positions[rank][0], RESULT if self._has_timeout(rank, positions) else SLEEP + RUNG, None)
            if what == "time out":
                late = (*late[:rank], late[rank] + 1, *late[rank + 1 :])
            else:
                early += 1
        else:
            if self._preemptions is not None:
                preempted += last not in (None, rank) and self._runnable(state, last)
                last = rank
            memory = self._step(memory, positions, rank)
        return memory, tuple(positions), (last, preempted, early, late)

    def _step(self, memory, positions, rank):
        """Make one step of a process, and return the memory that there is then."""
        process = self._processes[rank]
        node, phase, kept = positions[rank]
        kind, *args = process.access(node)
        done = True
        result = None
        if kind == "load":
            result = _word(memory, args[0])
        elif kind in ("store", "add", "swap"):
            if phase:
                self._ring(positions, args[-1])
                result = kept
            else:
                result, memory = self._change(memory, kind, *args[:-1])
                rings = args[-1] not in (-1, rank) and (kind != "swap" or result == args[1])
                if rings:
                    done, following = False, (node, 1, result)
        elif kind == "write":
            address, data = args
            half = len(data) // 2
            if phase or not half:
                memory = memory[: address + half] + data[half:] + memory[address + len(data) :]
            else:
                memory = memory[:address] + data[:half] + memory[address + half :]
                done, following = False, (node, 1, None)
        elif kind == "read":
            address, size = args
            half = size // 2
            result = (kept or b"") + memory[address + half : address + size]
            if not phase and half:
                done, following = False, (node, 1, memory[address : address + half])
        elif kind == "gone":
            result = self._ended(positions, args[0])
        elif kind == "wake":
            for other in range(len(positions)):
                self._ring(positions, other)
        elif kind == "nap":
            result = self._seen(memory, positions)
        elif kind == "wait":
            done, result, phase = self._wait(memory, positions, phase, *args)
            following = (node, phase, None)
        else:
            raise ValueError(kind)
        positions[rank] = (process.after(node, result), 0, None) if done else following
        return memory

    def _change(self, memory, kind, address, *args):
        before = _word(memory, address)
        if kind == "store":
            return None, _with_word(memory, address, args[0])
        if kind == "add":
            return before, _with_word(memory, address, before + args[0])
        return before, _with_word(memory, address, args[1]) if before == args[0] else memory

    def _ring(self, positions, rank):
        """Ring the bell of a rank if it has announced a sleeper."""
        position = positions[rank]
        if position is None or position[1] not in SLEEPERS:
            return
        positions[rank] = (position[0], position[1] + RUNG, None)

    def _wait(self, memory, positions, phase, address, value, timeout, peers):
        """Make a step of a wait: return whether it is over, with what, and else its next phase."""
        now = _word(memory, address)
        rung, phase = divmod(phase, RUNG)
        if phase == LOOK:
            if now >= value or timeout == 0:
                return True, now, None
            return False, None, ANNOUNCE
        if phase == ANNOUNCE:
            return False, None, LOOK_AGAIN
        if phase == LOOK_AGAIN:
            following = RESULT if now >= value else CHECK if peers else SLEEP
        elif phase == CHECK:
            following = LAST_LOOK if self._gone(positions, peers) else SLEEP
        elif phase == SLEEP:  # has woken
            rung = 0
            following = RESULT if now >= value else ANNOUNCE
        elif phase == LAST_LOOK:
            return True, now if now >= value else GONE, None
        else:
            return True, now, None
        return False, None, following + RUNG * rung if following in SLEEPERS else following

    def _story(self, stack):
        """Tell how the schedule went that leads to what was found."""
        lines = []
        for frame, after in zip(stack, [*stack[1:], None]):
            what, rank = frame[3]
            if what != "run":
                lines.append(f"  rank {rank}: {what}")
                continue
            node, phase, _ = frame[0][1][rank]
            access = " ".join(map(str, self._processes[rank].access(node)))
            then = after[0][1][rank] if after else (node,)
            came = f" -> {self._processes[rank].returned(then[0])!r}" if then[0] != node else ""
            lines.append(f"  rank {rank}: {access}{f' (step {phase})' if phase else ''}{came}")
        return "\n".join(lines)
