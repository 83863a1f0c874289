"""Root file systems of Debian, of its packages and of wheels of the package index; nothing of them runs while one is made."""

import os
import shutil
import subprocess
import sys

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
MERGED = ("bin", "sbin", "lib", "lib64")


def run(*command, **options):
    done = subprocess.run([os.fspath(word) for word in command], stdin=subprocess.DEVNULL, **options)
    if done.returncode:
        raise SystemExit(f"failed: {' '.join(map(str, command))}")
    return done


def mirror():
    """The mirror of Debian that this machine uses."""
    words = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Label: Debian"]
    found = subprocess.run(words, capture_output=True, text=True).stdout.split() if shutil.which("apt-get") else []
    if not found:
        raise SystemExit(
            "other Debians are made of Debian's packages by apt-get, which knows no mirror here: apt-get update"
        )
    return found[0]


def apt(folder, suite, machine):
    """The words that start apt-get for another distribution, with a state of its own in a folder."""
    for name in ("state/lists/partial", "cache/archives/partial", "etc/preferences.d", "etc/apt.conf.d"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "status").touch()
    (folder / "sources").write_text(f"deb [signed-by={KEYRING}] {mirror()} {suite} main\n")
    settings = {
        "APT::Architecture": machine,
        "APT::Architectures": machine,
        "APT::Sandbox::User": "root",
        "Dir::State": folder / "state",
        "Dir::State::status": folder / "status",
        "Dir::Cache": folder / "cache",
        "Dir::Etc::sourcelist": folder / "sources",
        "Dir::Etc::sourceparts": "-",
        "Dir::Etc::preferencesparts": folder / "etc/preferences.d",
        "Acquire::Languages": "none",
    }
    return ["apt-get", "-qq", *(f"-o{name}={value}" for name, value in settings.items())]


def packages(folder, suite, machine, names):
    """Fetch packages and what they depend on; return the files."""
    words = apt(folder, suite, machine)
    run(*words, "update")
    run(*words, "install", "--yes", "--no-install-recommends", "--download-only", *names, stdout=subprocess.DEVNULL)
    return sorted((folder / "cache/archives").glob("*.deb"))


def debian(root, suite, machine, names):
    """Make a root of packages and what they depend on, unless it is there: unpacked, not configured."""
    if (root / "made").exists():
        return
    shutil.rmtree(root, ignore_errors=True)
    state = root.with_name(f"{root.name}-apt")
    files = packages(state, suite, machine, names)
    for name in MERGED:
        (root / "usr" / name).mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to(f"usr/{name}")
    for file in files:
        with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", file], stdout=subprocess.PIPE) as content:
            tar = ["tar", "-x", "--keep-directory-symlink", "-C", root, "-f", "-"]
            if subprocess.run(tar, stdin=content.stdout).returncode:
                raise SystemExit(f"cannot unpack {file}")
    for name in ("proc", "sys", "dev", "tmp", "run", "root"):
        (root / name).mkdir(exist_ok=True)
    (root / "tmp").chmod(0o1777)
    (root / "etc").mkdir(exist_ok=True)
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    (root / "etc/hosts").write_text("127.0.0.1 localhost guest\n")
    (root / "made").touch()


def install(site, wheels, version, machine, extra=()):
    """Install gormapy from the folder of wheels, and others from the index, for a Python that need not run here."""
    shutil.rmtree(site, ignore_errors=True)
    tags = [f"manylinux_2_{minor}_{machine}" for minor in (17, 27, 28)] + [f"manylinux2014_{machine}"]
    words = [
        *(sys.executable, "-m", "pip", "install", "-qq", "--disable-pip-version-check", "--no-compile"),
        *("--target", site, "--only-binary", ":all:", "--python-version", version, "--implementation", "cp"),
        *(f"--platform={tag}" for tag in tags),
    ]
    # Its scripts come first: pip leaves a folder of scripts that is there as it is.
    run(*words, "--no-index", "--no-deps", "--find-links", wheels, "--pre", "gormapy")
    run(*words, "numpy")
    if extra:
        subprocess.run([*words, *extra], stdin=subprocess.DEVNULL)  # what a new Python does not have yet is left out
