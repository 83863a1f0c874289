"""The epochs of windows, found from the calls that begin and end them."""

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
    # The most specific kind last: it gets the operations.
    order = {"fence": 0, "lock_all": 1, "access": 2, "lock": 3}
    ranked = [i for i in range(len(epochs)) if epochs["kind"][i] in order]
    by_origin = {}
    for key in np.unique(operations[["rank", "window"]]):
        mine = np.flatnonzero((operations["rank"] == key["rank"]) & (operations["window"] == key["window"]))
        by_origin[int(key["rank"]), int(key["window"])] = mine[np.argsort(operations["begin"][mine], kind="stable")]
    for i in sorted(ranked, key=lambda i: order[str(epochs["kind"][i])]):
        mine = by_origin.get((int(epochs["rank"][i]), int(epochs["window"][i])))
        if mine is None:
            continue
        first, last = np.searchsorted(operations["begin"][mine], [epochs["begin"][i], epochs["end"][i]])
        inside = mine[first : last + 1]
        inside = inside[operations["begin"][inside] <= epochs["end"][i]]
        if epochs["kind"][i] == "lock":
            inside = inside[operations["peer"][inside] == epochs["target"][i]]
        operations["epoch"][inside] = i
    np.add.at(epochs["operations"], operations["epoch"][operations["epoch"] >= 0], 1)
    kept = epochs["closed"] | (epochs["kind"] != "fence") | (epochs["operations"] > 0)
    places = np.cumsum(kept) - 1
    chosen = operations["epoch"] >= 0
    operations["epoch"][chosen] = places[operations["epoch"][chosen]]
    return epochs[kept]
