"""The settings: the table of the core, with the values from the environment."""

import json
import os


def facts():
    """Return the rows of the table, and variables that look like settings and are none."""
    try:
        from gormapy._ext import core

        known = json.loads(core.Settings())
    except (ImportError, RuntimeError):  # the core is not loaded, or this process was forked
        known = {"table": [], "marks": []}
        return {**known, "unknown": {}}
    return {**known, "unknown": unknown(os.environ, [row["name"] for row in known["table"]], known["marks"])}


def unknown(environment, names, marks):
    """Return the variables that are named like a setting but are none, each with the name that was meant, or None."""
    from difflib import get_close_matches

    found = {}
    for name in sorted(environment):
        if name in names or name.startswith(tuple(marks)):
            continue
        ours = name.upper().startswith("GORMAPY_")
        # a slip in the prefix too, but then the rest has to be right
        near = get_close_matches(name.upper(), names, 1, 0.75 if ours else 0.85)
        if ours or near:
            found[name] = near[0] if near else None
    return found
