"""Random one-sided operations from a seed, on all ranks at once, against a serial model in NumPy.

Arguments: the seed, the number of operations of all ranks together, the window's flavour.

Every rank draws the whole plan from the seed, so that it knows what all others do. A plan is a sequence of phases.
In a phase all ranks synchronise in one way, and each cell of a window is used in one of these ways only, so that
there is one outcome, whatever the order of the ranks:

- owned: one rank puts, gets and accumulates there with any op, in its program order (puts and gets are
  separated from each other by a flush);
- commuting: all ranks accumulate there with the one op of the cell; who fetches checks what holds in any order;
- claimed: all ranks compare-and-swap from the content before the phase; one of them wins, whom they agree on.

After each phase everybody compares the own part with the model.
"""

import sys

import numpy as np
from onesided import MPI, Window, rank, same, size, world

SEED, OPERATIONS, FLAVOUR = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]

CELLS = 16 * size  # of each rank's part, 8 bytes each
OWNED, COMMUTING, CLAIMED = 0, 1, 2
SYNCHRONISATIONS = ("fence", "lock", "exclusive", "lock all", "post")
PER_PHASE = 40  # operations of a rank

OPS = {
    "SUM": np.add,
    "PROD": np.multiply,
    "MAX": np.maximum,
    "MIN": np.minimum,
    "BAND": np.bitwise_and,
    "BOR": np.bitwise_or,
    "BXOR": np.bitwise_xor,
    "REPLACE": lambda old, new: new,
}
COMMUTE = ("SUM", "MAX", "MIN", "BAND", "BOR", "BXOR")
TYPE = MPI.INT64_T


class Shape:
    """Which cells an operation touches, and the datatype that says so."""

    def __init__(self, draw, cells):
        """Draw a shape that lies inside a run of so many cells."""
        kind = draw.choice(["one", "contiguous", "vector", "indexed", "backwards"])
        self.make = None  # how to make the datatype, on the rank that uses it
        if kind == "one":
            self.cells = np.array([0])
        elif kind == "contiguous":
            self.cells = np.arange(draw.integers(1, cells + 1))
        elif kind == "vector":
            stride = int(draw.integers(1, 4))
            count = int(draw.integers(1, (cells - 1) // stride + 2))
            self.cells = np.arange(count) * stride
            self.make = lambda: TYPE.Create_vector(count, 1, stride)
        elif kind == "indexed":
            self.cells = draw.permutation(cells)[: draw.integers(1, cells + 1)]
            self.make = lambda: TYPE.Create_indexed_block(1, self.cells.tolist())
        else:
            self.cells = np.arange(draw.integers(1, cells + 1))[::-1]
            self.make = lambda: TYPE.Create_hindexed_block(1, (8 * self.cells).tolist())
        self.first = int(draw.integers(0, cells - self.cells.max()))

    def reduce_to_one(self):
        """Make it one element, which is what some calls take."""
        self.cells, self.make = np.array([0]), None

    def place(self, w, target, begin):
        """Return the target's side of the operation, and the datatype to free after the call, if any."""
        disp = w.at(target, begin + self.first)
        if self.make is None:
            return (disp, len(self.cells), TYPE), None
        datatype = self.make().Commit()
        return (disp, 1, datatype), datatype


class Phase:
    """What everybody does between two comparisons."""

    def __init__(self, draw):
        self.how = str(draw.choice(SYNCHRONISATIONS))
        # each rank's part has a run of 16 cells for each rank; what a run is used for
        self.use = draw.choice([OWNED, OWNED, COMMUTING, CLAIMED], (size, size))
        self.op = draw.choice(COMMUTE, (size, size))
        self.plans = [[self.operation(draw, me) for _ in range(PER_PHASE)] for me in range(size)]

    def operation(self, draw, me):
        target = int(draw.integers(size))
        run = int(draw.integers(size))
        use = self.use[target, run]
        if use == OWNED:
            run = me  # which is the owner's
            use = self.use[target, run]
        requests = self.how in ("lock", "exclusive", "lock all") and draw.random() < 0.3
        if use == OWNED:
            call = str(draw.choice(["put", "get", "acc", "get_acc", "fop", "cas"]))
            op = str(draw.choice(list(OPS)))
        elif use == COMMUTING:
            call, op = str(draw.choice(["acc", "get_acc", "fop"])), str(self.op[target, run])
        else:
            call, op = "cas", "REPLACE"
        shape = Shape(draw, 16)
        if call in ("fop", "cas"):
            shape.reduce_to_one()
        values = draw.integers(-1000, 1000, len(shape.cells))
        return target, run, int(use), call, op, shape, values, requests, bool(draw.random() < 0.5)


def run_model(model, phase):
    """Do a phase on the model, rank by rank. Return what was there, and the cells that ranks lay claim to."""
    before, claims = model.copy(), set()
    for plan in phase.plans:
        for target, run, use, call, op, shape, values, _, hit in plan:
            cells = 16 * run + shape.first + shape.cells
            if use == CLAIMED:
                claims.add((target, int(cells[0])))
            else:
                apply(model[target], cells, call, op, values, hit)
    return before, sorted(claims)


def apply(part, cells, call, op, values, hit):
    """Do one operation on a rank's part of the model."""
    if call == "put" or (call == "cas" and hit):
        part[cells] = values
    elif call in ("acc", "get_acc", "fop"):
        with np.errstate(over="ignore"):
            part[cells] = OPS[op](part[cells], values)


class Origin:
    """What a rank does in a phase."""

    def __init__(self, w, phase):
        self.w, self.win, self.phase = w, w.win, phase
        self.results = []
        self.kept = []
        self.requests = []
        self.last = {}  # (target, run): whether the last operation there was an accumulate

    def separate(self, target, run, call):
        """Complete what must not meet: puts and gets are not ordered, accumulates are ordered among each other."""
        accumulate = call in ("acc", "get_acc", "fop", "cas")
        if self.last.get((target, run), accumulate) and accumulate:
            self.last[target, run] = True
            return
        if (target, run) in self.last:
            self.complete(target)
        self.last[target, run] = accumulate

    def complete(self, target):
        """Complete all operations on a target in the middle of a phase, if the epoch has a call for that."""
        MPI.Request.Waitall(self.requests)
        self.requests.clear()
        self.win.Flush(target)

    def may_flush(self):
        return self.phase.how in ("lock", "exclusive", "lock all")

    def do(self, target, run, use, call, op, shape, values, request, hit, before):
        w, win = self.w, self.win
        place, datatype = shape.place(w, target, 16 * run)
        result = np.full(len(values), -5, "i8")
        values = values.copy()
        self.kept.append((values, result))
        handle = getattr(MPI, op)
        begun = None
        if call == "put":
            begun = (win.Rput if request else win.Put)([values, len(values), TYPE], target, place)
        elif call == "get":
            begun = (win.Rget if request else win.Get)([result, len(result), TYPE], target, place)
        elif call == "acc":
            begun = (win.Raccumulate if request else win.Accumulate)([values, len(values), TYPE], target, place, handle)
        elif call == "get_acc":
            ask = win.Rget_accumulate if request else win.Get_accumulate
            begun = ask([values, len(values), TYPE], [result, len(result), TYPE], target, place, handle)
        elif call == "fop":
            win.Fetch_and_op(values, result, target, place[0], handle)
        else:
            # what is never there: in a cell that one rank uses any other value, else one that nobody writes
            missing = before ^ 1 if use == OWNED else 1 << 60
            expected = np.array([before if hit else missing], "i8")
            self.kept.append(expected)
            win.Compare_and_swap(values, expected, result, target, place[0])
        if datatype is not None:
            datatype.Free()
        if request and begun is not None:
            self.requests.append(begun)
        self.results.append((target, run, use, call, shape, result))


def in_turns(plan):
    """Return the operations of a plan by target, as an epoch of one target after the other does them."""
    return [[(i, o) for i, o in enumerate(plan) if o[0] == target] for target in range(size)]


def allowed_without_flush(plan):
    """Leave out what would need a flush in the middle, where there is none: mixed use of one run by one rank."""
    last, result = {}, []
    for o in plan:
        key, accumulate = (o[0], o[1]), o[3] in ("acc", "get_acc", "fop", "cas")
        if o[2] == OWNED and key in last and not (accumulate and last[key]):
            continue
        last[key] = accumulate
        result.append(o)
    return result


def fill(phase):
    if phase.how in ("fence", "post"):
        phase.plans = [allowed_without_flush(plan) for plan in phase.plans]
    else:
        phase.plans = [[o for part in in_turns(plan) for _, o in part] for plan in phase.plans]
    # only the first of a rank's claims on a cell, so that a rank knows its own outcome
    for me, plan in enumerate(phase.plans):
        seen, kept = set(), []
        for o in plan:
            cell = (o[0], 16 * o[1] + o[5].first)
            if o[2] == CLAIMED and cell in seen:
                continue
            seen.add(cell) if o[2] == CLAIMED else None
            kept.append(o)
        phase.plans[me] = kept


def play(w, phase, model):
    """Do a phase for real and on the model, and compare."""
    win = w.win
    origin = Origin(w, phase)
    # what the own compare-and-swaps have to expect is in a model of the own doing
    own = model.copy()

    def one(operation):
        target, run, use, call, op, shape, values, _, hit = operation
        cells = 16 * run + shape.first + shape.cells
        part = own[target]
        if origin.may_flush():
            origin.separate(target, run, call)
        origin.do(*operation, int(part[cells[0]]) if use == OWNED else int(model[target][cells[0]]))
        expect = part[cells].copy()
        if use == OWNED:
            apply(part, cells, call, op, values, hit)
        return expect

    plan = phase.plans[rank]
    expects = []
    if phase.how == "fence":
        win.Fence()
        expects = [one(o) for o in plan]
        win.Fence(MPI.MODE_NOSUCCEED)
    elif phase.how == "post":
        everyone = world.Get_group()
        win.Post(everyone)
        win.Start(everyone)
        expects = [one(o) for o in plan]
        win.Complete()
        win.Wait()
    elif phase.how == "lock all":
        win.Lock_all()
        expects = [one(o) for o in plan]
        MPI.Request.Waitall(origin.requests)
        win.Unlock_all()
    else:
        kind = MPI.LOCK_SHARED if phase.how == "lock" else MPI.LOCK_EXCLUSIVE
        for target in sorted({o[0] for o in plan}):
            win.Lock(target, kind)
            expects += [one(o) for o in plan if o[0] == target]
            MPI.Request.Waitall(origin.requests)
            origin.requests.clear()
            win.Unlock(target)
    # cells that a rank owns: what it fetched follows from its program
    for (target, run, use, call, shape, result), expect in zip(origin.results, expects):
        if use == OWNED and call not in ("put", "acc"):
            same(result, expect, phase.how, call, target, run, shape.cells)
    # the outcome of the others' operations
    before, claims = run_model(model, phase)
    for o, (target, run, use, call, shape, result) in zip(plan, origin.results):
        if use == COMMUTING and call != "acc" and o[4] in ("MAX", "MIN", "BOR", "BAND"):
            start = before[target][16 * run + shape.first + shape.cells]
            same(OPS[o[4]](start, result), result, phase.how, "went back", o[4], target, run)
            reached = model[target][16 * run + shape.first + shape.cells]
            same(OPS[o[4]](reached, result), reached, phase.how, "went too far", o[4], target, run)
    mine = [(o[0], int(16 * o[1] + o[5].first), int(o[6][0]), int(r[5][0]), o[8])
            for o, r in zip(plan, origin.results) if o[2] == CLAIMED]  # fmt: skip
    every = world.allgather(mine)
    for target, cell in claims:
        start = int(before[target][cell])
        tried = [(value, old) for part in every for t, c, value, old, hit in part if (t, c) == (target, cell) and hit]
        won = [value for value, old in tried if old == start]
        # values equal to the content change nothing, so that more than one may see it
        changed = [value for value in won if value != start]
        assert len(changed) <= 1, (phase.how, target, cell, start, tried)
        if any(value != start for value, _ in tried):
            assert len(changed) == 1, (phase.how, target, cell, start, tried)
        if changed:
            model[target][cell] = changed[0]
    win.Lock(rank, MPI.LOCK_SHARED)
    win.Sync()
    win.Unlock(rank)
    same(w.mine, model[rank], phase.how)
    world.Barrier()
    return sum(len(plan) for plan in phase.plans)


draw = np.random.default_rng(SEED)
done = phases = 0
with Window(FLAVOUR, CELLS, "i8") as w:
    model = draw.integers(-1000, 1000, (size, CELLS))
    w.mine[:] = model[rank]
    world.Barrier()
    while done < OPERATIONS:
        phase = Phase(draw)
        fill(phase)
        done += play(w, phase, model)
        phases += 1
if rank == 0:
    print(f"{done} operations in {phases} phases on {size} ranks, {FLAVOUR}, seed {SEED}")
