"""Which epochs of windows there were, found from the calls that begin and end them."""

import numpy as np

EPOCH = np.dtype(
    [
        ("rank", "i4"),
        ("window", "i8"),
        ("kind", "U10"),
        ("target", "i4"),
        ("begin", "f8"),
        ("end", "f8"),
        ("closed", "?"),
        ("operations", "i4"),
    ]
)

# Assertions of Fence, numbered as in gormapy.MPI, which would make this process a rank.
NOPRECEDE, NOSUCCEED = 8192, 16384

# The call that begins an epoch -> (kind, the calls that end it)
_PAIRS = {
    "Win.Lock": ("lock", ("Win.Unlock",)),
    "Win.Lock_all": ("lock_all", ("Win.Unlock_all",)),
    "Win.Start": ("access", ("Win.Complete",)),
    "Win.Post": ("exposure", ("Win.Wait", "Win.Test")),
}
_ENDS = {call: begin for begin, (_, ends) in _PAIRS.items() for call in ends}


def find(calls, last):
    """Return the epochs in an array of calls; those that were not ended last until `last`."""
    found, running = [], {}
    chosen = calls[(calls["category"] == "epoch") & (calls["window"] >= 0) & ~calls["failed"] & calls["finished"]]
    for call in chosen[np.argsort(chosen["end"], kind="stable")]:
        name, rank, window = str(call["name"]), int(call["rank"]), int(call["window"])
        target = int(call["peer"]) if name in ("Win.Lock", "Win.Unlock") else -1
        if name == "Win.Fence":
            begun = running.pop((rank, window, "Win.Fence", -1), None)
            if begun is not None and not int(call["tag"]) & NOPRECEDE:
                found.append((rank, window, "fence", -1, begun, call["end"], True, 0))
            if not int(call["tag"]) & NOSUCCEED:
                running[rank, window, "Win.Fence", -1] = call["end"]
        elif name in _PAIRS:
            running[rank, window, name, target] = call["begin"]
        elif name in _ENDS and not (name == "Win.Test" and call["tag"] != 1):
            key = rank, window, _ENDS[name], target
            if key in running:
                found.append((rank, window, _PAIRS[key[2]][0], target, running.pop(key), call["end"], True, 0))
    for (rank, window, name, target), begun in running.items():
        kind = _PAIRS[name][0] if name in _PAIRS else "fence"
        found.append((rank, window, kind, target, begun, last, False, 0))
    epochs = np.array(found, EPOCH)
    return epochs[np.argsort(epochs["begin"], kind="stable")]


def assign(epochs, operations):
    """Set the epoch of each operation and count them; return the epochs without last fences that had none."""
    order = {"lock": 0, "access": 1, "lock_all": 2, "fence": 3}
    candidates = {}
    for i, epoch in enumerate(epochs):
        if epoch["kind"] != "exposure":
            candidates.setdefault((int(epoch["rank"]), int(epoch["window"])), []).append(i)
    for operation in operations:
        fits = [
            i
            for i in candidates.get((int(operation["rank"]), int(operation["window"])), ())
            if epochs["begin"][i] <= operation["begin"] <= epochs["end"][i]
            and (epochs["kind"][i] != "lock" or epochs["target"][i] == operation["peer"])
        ]
        if fits:
            best = min(fits, key=lambda i: order[str(epochs["kind"][i])])
            operation["epoch"] = best
            epochs["operations"][best] += 1
    kept = epochs["closed"] | (epochs["kind"] != "fence") | (epochs["operations"] > 0)
    places = np.cumsum(kept) - 1
    chosen = operations["epoch"] >= 0
    operations["epoch"][chosen] = places[operations["epoch"][chosen]]
    return epochs[kept]
