"""What the Makefile asks for: python -m lessons COMMAND [LESSON...]."""

import re
import sys
from pathlib import Path

from . import elsewhere, execute, notebook, source

FOLDER = Path(__file__).resolve().parents[2]
EXECUTED = FOLDER.parent / ".cache" / "notebooks"

# How many cells a lesson has, without exercises.
SIZES = range(15, 26)

USAGE = """\
usage: python -m lessons COMMAND [LESSON...]
  build   execute the lessons, write their notebooks and the list in README.md
  test    compare the notebooks with the sources, and execute them
  check   compare only
  try     execute the sources only; what was executed lies in .cache/notebooks
  elsewhere  run the programs of the sources on MPICH and Open MPI
  checked execute the sources on ranks that are checked: nothing is found but what they say
  list    write the list only
  LESSON is a number or the beginning of a name: 1, 05-windows"""


def lessons(chosen):
    """Return the lessons that the arguments name; all without arguments."""
    found = sorted((FOLDER / "source").glob("[0-9][0-9]-*.md"))
    wanted = []
    for text in chosen:
        start = f"{int(text):02}-" if text.isdigit() else text
        matching = [path for path in found if path.stem.startswith(start)]
        if not matching:
            raise SystemExit(f"no lesson begins with '{start}'; there are: {' '.join(path.stem for path in found)}")
        wanted += matching
    return [source.read(path) for path in (wanted if chosen else found)]


def files(lesson):
    """Return the student's and the teacher's file of a lesson."""
    return FOLDER / f"{lesson.name}.ipynb", FOLDER / "teacher" / f"{lesson.name}.ipynb"


def build(chosen):
    """Execute the sources and write the notebooks."""
    rows = []
    for lesson in lessons(chosen):
        done = execute.run(lesson, notebook.make(lesson, teacher=True))
        for path, teacher in zip(files(lesson), (False, True)):
            made = notebook.make(lesson, teacher=teacher)
            notebook.write(notebook.with_outputs(made, done.notebook, teacher=teacher), path)
        rows.append(show(lesson, done))
    write_list()
    table(rows)


def check(chosen):
    """Return what is wrong with the notebooks as they are in the repository."""
    wrong = []
    for lesson in lessons(chosen):
        if not lesson.minutes:
            wrong.append(
                f"{lesson.path}: the line '<!-- 45 minutes -->' is missing, with the time that the lesson takes"
            )
        if lesson.size not in SIZES:
            wrong.append(
                f"{lesson.path}: has {lesson.size} cells without exercises; {SIZES[0]} to {SIZES[-1]} are a lesson"
            )
        for path, teacher in zip(files(lesson), (False, True)):
            again = f"run 'make notebooks LESSONS={lesson.name[:2]}' and commit what it writes"
            if not path.exists():
                wrong.append(f"{path}: missing: {again}")
                continue
            there, due = notebook.load(path), notebook.make(lesson, teacher=teacher)
            if notebook.without_outputs(there) != notebook.without_outputs(due):
                wrong.append(f"{path}: not what its source says: {again}")
            elif any(cell["cell_type"] == "code" and not cell["execution_count"] for cell in there["cells"]):
                wrong.append(f"{path}: has cells that were not executed: {again}")
            elif stain := execute.stains(there):
                wrong.append(f"{path}: {stain}")
    names = {lesson.name for lesson in lessons([])}
    for path in [*FOLDER.glob("*.ipynb"), *FOLDER.glob("teacher/*.ipynb")]:
        if path.stem not in names:
            wrong.append(f"{path}: has no source")
    if listed() != (FOLDER / "README.md").read_text(encoding="utf-8"):
        wrong.append(f"{FOLDER / 'README.md'}: its list of lessons is not that of the sources: run 'make notebooks'")
    return wrong


def test(chosen):
    """Compare and execute."""
    return check(chosen) + attempt(chosen)


def attempt(chosen, check=False):
    """Execute; what was executed lies in .cache/notebooks."""
    wrong, rows = [], []
    for lesson in lessons(chosen):
        try:
            done = execute.run(lesson, notebook.make(lesson, teacher=True), check=check)
        except execute.LessonError as failed:
            wrong.append(str(failed))
            print(f"{lesson.name:<30} failed", flush=True)
            continue
        folder = EXECUTED / "checked" if check else EXECUTED
        notebook.write(done.notebook, folder / f"{lesson.name}.ipynb")
        rows.append(show(lesson, done))
    table(rows)
    return wrong


def checked(chosen):
    """Execute on ranks that are checked; what was executed lies in .cache/notebooks/checked."""
    return attempt(chosen, check=True)


def compare(chosen):
    """Run the programs on other MPIs."""
    return elsewhere.table(lessons(chosen))


def show(lesson, done):
    """Print a lesson's row as it comes, and return it."""
    row = (lesson.name, lesson.size, lesson.exercises, done.seconds, done.slowest)
    print(f"{lesson.name:<30} {done.seconds:6.1f} s", flush=True)
    return row


def table(rows):
    """Print the lessons with the times that they took."""
    print(f"\n{'lesson':<30} {'cells':>5} {'exercises':>9} {'time':>8} {'longest cell':>12}")
    for name, cells, exercises, seconds, slowest in rows:
        print(f"{name:<30} {cells:>5} {exercises:>9} {seconds:>6.1f} s {slowest:>10.1f} s")
    print(f"{'all':<30} {'':>5} {'':>9} {sum(row[3] for row in rows):>6.1f} s")


def listed():
    """Return the text of notebooks/README.md with the list of the lessons that there are."""
    rows = ["| lesson | minutes | |", "|---|---|---|"]
    rows += [f"| [{each.title}]({each.name}.ipynb) | {each.minutes} | {each.summary} |" for each in lessons([])]
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    begin, end = "<!-- list of lessons -->\n", "<!-- end of list -->"
    return re.sub(f"{begin}.*?{end}", lambda _: begin + "\n".join(rows) + "\n" + end, text, flags=re.DOTALL)


def write_list():
    """Write that text."""
    (FOLDER / "README.md").write_text(listed(), encoding="utf-8")


def main(arguments):
    """Run a command."""
    command, chosen = (arguments or [""])[0], arguments[1:]
    try:
        match command:
            case "build":
                build(chosen)
            case "list":
                write_list()
            case "test" | "check" | "try" | "checked" | "elsewhere":
                do = {"test": test, "check": check, "try": attempt, "checked": checked, "elsewhere": compare}[command]
                if wrong := do(chosen):
                    raise SystemExit("\n" + "\n\n".join(wrong))
            case _:
                raise SystemExit(USAGE)
    except (source.SourceError, execute.LessonError) as wrong:
        raise SystemExit(str(wrong)) from None


main(sys.argv[1:])
