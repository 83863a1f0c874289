"""Pages of the core's layers: the packages' comments, as docs/tools/packagecomments prints them."""

import re

# What the comment of gocore calls them, as titles, with a sentence each.
TITLES = {
    "programs": ("Programs", "What a user starts: the launcher, and an example of ranks in Go."),
    "objects": ("Objects", "Communicators, windows, requests and files as the boundary to C and Python names them."),
    "operations": ("Operations", "What MPI does: one-sided operations, files, collectives, messages."),
    "progress": ("Progress", "The engine that moves all of it, whoever waits."),
    "start": ("Start", "How a process becomes a rank of a job, and how the job is watched."),
    "transports": ("Transports", "How bytes get from one process to another."),
    "devices": ("Devices", "The libraries of network adapters."),
    "contracts": ("Contracts", "What a transport promises, and what the processes of a job share."),
    "data": ("Data", "Datatypes, reductions, and agreement."),
    "system": ("System", "Memory, threads, faults, settings: what everything stands on."),
    "tests": ("For tests", "Packages that only tests import."),
}


def anchor(package):
    """Return the label of a package."""
    return "package-" + package.replace("/", "-")


def _linked(package, packages):
    return f"[{package}](#{anchor(package)})" if package in packages else package


def pages(found):
    """Return the text of each layer's page, by name, the highest layer first."""
    packages = found["packages"]
    users = {name: sorted(other for other in packages if name in packages[other]["imports"]) for name in packages}
    out = {}
    for layer in found["layers"]:
        title, sentence = TITLES[layer["name"]]
        lines = [f"# {title}", "", sentence, ""]
        for name in layer["packages"]:
            package = packages[name]
            lines += [f"({anchor(name)})=", f"## {name}", "", f"`gocore/{name}`", "", _comment(package["comment"]), ""]
            for what, others in (("Imports", package["imports"]), ("Imported by", users[name])):
                if others:
                    lines += [f"{what}: {', '.join(_linked(other, packages) for other in others)}", ""]
        out[layer["name"]] = "\n".join(lines)
    return out


def _comment(text):
    """Return a comment without the sentences that the lists of imports say, and code blocks as fences."""
    text = re.sub(r"^# .*$", "", text, flags=re.MULTILINE)
    blocks = []
    for block in re.split(r"\n{2,}", text.strip("\n")):
        if all(line.startswith("\t") for line in block.splitlines()):
            code = [line[1:] for line in block.splitlines()]
            if blocks and blocks[-1].startswith("```text"):  # blank lines within a block
                blocks[-1] = "\n".join([blocks[-1].removesuffix("\n```"), "", *code, "```"])
            else:
                blocks.append("\n".join(["```text", *code, "```"]))
        else:
            blocks.append(re.sub(r"^ ", "", block, flags=re.MULTILINE) if re.match(r" (\d+\.|-)", block) else block)
    return "\n\n".join(blocks)


def overview(found):
    """Return a table of the layers in place of the graph, which is too wide for a page."""
    lines = ["| layer | packages |", "|---|---|"]
    for layer in found["layers"]:
        title, _ = TITLES[layer["name"]]
        names = " ".join(_linked(name, found["packages"]) for name in layer["packages"])
        lines.append(f"| [{title}](docs/layers/{layer['name']}.md) | {names} |")
    return "\n".join(lines)
