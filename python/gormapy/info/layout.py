"""The report as text."""

import textwrap

_WIDTH = 110
# The launchers, by the core's names, as text.
_LAUNCHERS = {
    "none": "none: a job of one rank",
    "mpiexec": "gormapy's mpiexec",
    "Hydra": "MPICH's mpiexec (Hydra), by PMI-1",
    "PMI-1": "one that speaks PMI-1",
}
_LEGEND = {
    "direct": "loads and stores in memory that both ranks map",
    "copy": "one system call per access, the kernel copies",
    "rdma": "the network reads and writes the target's memory",
    "message": "the target's progress engine serves it",
}


def show(report):
    """Return all of a report."""
    sections = [_gormapy(report), _machine(report["machine"]), _job(report), _transports(report)]
    if "ranks" in report:
        sections.append(_ranks(report["ranks"], report["missing"]))
    sections.append(_given(report["settings"]))
    return "\n\n".join(section for section in sections if section)


def _section(title, rows):
    """Return a title and its rows: pairs of a name and a text, which is wrapped beside it."""
    width = max((len(name) for name, text in rows if text), default=0) + 2
    lines = [title]
    for name, text in rows:
        if text:
            lines += textwrap.wrap(
                str(text), _WIDTH, initial_indent=f"  {name:<{width}}", subsequent_indent=" " * (width + 2),
                break_long_words=False, break_on_hyphens=False,
            )  # fmt: skip
    return "\n".join(lines)


def _gormapy(report):
    core, python, mpiexec = report["core"], report["python"], report["mpiexec"]
    rows = [
        ("folder", report["gormapy"]["folder"]),
        ("core", f"{core['file']}, built by {core['go']}" if core else "can't be used: see MPI below"),
        ("Python", f"{python['version']} {python['implementation']}, {python['executable']}"),
        ("packages", ", ".join(f"{name} {version}" for name, version in report["packages"].items())),
        ("mpiexec", _mpiexec(mpiexec)),
    ]
    return _section(f"gormapy {report['gormapy']['version']}", rows)


def _mpiexec(found):
    if not found["own"]:
        return "gormapy's is missing from the installation: build or install it again"
    if found["is_own"]:
        return f"{found['on_path']} (gormapy's)"
    if not found["on_path"]:
        return f"{found['own']} (gormapy's; not on PATH: python -m gormapy.launch starts it)"
    return f"{found['on_path']} is ANOTHER program: start ranks by gormapy-mpiexec or python -m gormapy.launch"


def _machine(machine):
    cores = f"{machine['cores']}, of which this process may use {machine['cores_usable']}"
    if machine["cores_limit"]:
        cores += f", and {machine['cores_limit']:g} cores' worth of time"
    rows = [
        ("host", machine["host"]),
        ("system", f"{machine['system']}, {machine['kernel']} {machine['architecture']}, {machine['libc']}"),
        ("processor", machine["processor"]),
        ("cores", cores),
        ("memory", f"{machine['memory'] / 2**30:.1f} GiB" if machine["memory"] else ""),
        ("user", "root" if machine["user"] == 0 else machine["user"]),
        ("container", machine["container"]),
    ]
    return _section("machine", rows)


def _job(report):
    job = report["job"]
    rows = [("state", report["state"]), ("error", report["error"])]
    if job:
        rows += [
            ("launcher", _launcher(job)),
            ("rank", f"{job['rank']} of {job['size']}, process {job['pid']}"),
            ("no rank", job["why"]),
        ]
    if report["variables"] and (not job or job["launcher"] == "none"):
        rows.append(("environment", "has " + ", ".join(report["variables"])))
    return _section("MPI", rows)


def _launcher(job):
    return _LAUNCHERS.get(job["launcher"], job["launcher"])


def _transports(report):
    rows = [(found["name"], _usable(found)) for found in report["transports"]]
    if report["shared_arrays"]:
        rows.append(("arrays", _usable(report["shared_arrays"])))
    return _section("transports", rows) if rows else ""


def _usable(found):
    return f"{'yes' if found['usable'] else 'no '}  {found['text']}"


def _ranks(ranks, missing):
    """Return the table of ranks, as rank 0 reaches them, and the differences that other ranks see."""
    first = ranks[0]
    reached = "ways" in first
    flavors = list(first["ways"]) if reached else []
    head = ["rank", "pid", "host", "cores"]
    several = reached and len(set(first["nodes"])) > 1
    if several:
        head.append("node")
    if reached:
        head += ["transport", *(f"Win.{flavor}" for flavor in flavors)]
    table = [head]
    for row in ranks:
        cells = [row["rank"], row["pid"], row["host"], row["cores_usable"]]
        if several:
            cells.append(first["nodes"][row["rank"]])
        if reached:
            cells += [first["transports"][row["rank"]], *(first["ways"][flavor][row["rank"]] for flavor in flavors)]
        table.append([str(cell) for cell in cells])
    widths = [max(len(row[i]) for row in table) for i in range(len(head))]
    lines = ["ranks, and how rank 0 reaches them" if reached else "ranks"]
    if several:
        lines[0] += "; those of a node share memory"
    for row in table:
        cells = [_cell(text, width, column) for column, (text, width) in enumerate(zip(row, widths))]
        lines.append("  " + "  ".join(cells).rstrip())
    if reached:
        lines += [f"  to rank {rank}: {text}" for rank, text in first["texts"].items()]
        lines += _others(ranks)
        used = {way for row in ranks for ways in row["ways"].values() for way in ways}
        lines += [f"  {way}: {text}" for way, text in _LEGEND.items() if way in used]
    lines += [f"  NOT HERE: {text or f'rank {rank}'}" for rank, text in missing.items()]
    return "\n".join(lines)


def _cell(text, width, column):
    return f"{text:>{width}}" if column in (0, 1, 3) else f"{text:<{width}}"


def _others(ranks):
    """Return lines about the differences between ranks."""
    lines = []
    first = ranks[0]
    for row in ranks:
        for what in ("python", "gormapy"):
            if row[what] != first[what]:
                lines.append(f"  rank {row['rank']} has {what} {row[what]}, rank 0 has {first[what]}")
    why = sorted({text for row in ranks for text in row["refusals"].values()})
    usual = {}
    for row in ranks:
        for flavor, ways in row["ways"].items():
            for target, way in enumerate(ways):
                near = row["nodes"][target] == row["nodes"][row["rank"]]
                if target != row["rank"]:
                    usual.setdefault((flavor, near), way)
                    if way != usual[flavor, near]:
                        lines.append(f"  Win.{flavor}: rank {row['rank']} reaches rank {target} by {way}")
    for text in why:
        lines += textwrap.wrap(
            f"no copying straight between ranks: {text}", _WIDTH, initial_indent="  ", subsequent_indent="    "
        )
    return lines


def _given(settings):
    """Return the settings that are set, and the errors in them."""
    rows = [(row["name"], f"{row['value']}  (default: {row['default']})") for row in settings["table"] if row["given"]]
    lines = [_section("settings", rows)] if rows else ["settings\n  none is set"]
    lines += [f"  WARNING: {text}" for text in warnings(settings)]
    lines.append("  python -m gormapy info --config lists all of them")
    return "\n".join(lines)


def warnings(settings):
    """Return the errors in the settings in the environment."""
    found = [row["problem"] for row in settings["table"] if row["problem"]]
    for name, near in settings["unknown"].items():
        found.append(f"{name} is no setting" + (f": {near} was meant?" if near else ""))
    return found


def config(settings):
    """Return all settings: name, default, value in effect, meaning."""
    parts = []
    for row in settings["table"]:
        value = row["value"] + (" (from the environment)" if row["given"] and not row["problem"] else " (the default)")
        rows = [
            ("meaning", row["meaning"]),
            ("value", value if row["value"] else "not set"),
            ("default", row["default"] or "not set"),
            ("choices", ", ".join(row["choices"] or [])),
            ("read by", row["reader"]),
        ]
        parts.append(_section(row["name"], rows))
    if not parts:
        parts = ["the settings are listed by gormapy's core, which can't be used: see python -m gormapy info"]
    parts += [f"WARNING: {text}" for text in warnings(settings)]
    return "\n\n".join(parts)
