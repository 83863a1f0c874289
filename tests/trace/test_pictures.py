"""Pictures show what the recording has."""

import subprocess
import sys

import numpy as np
import pytest
from support.mpirun import environment
from support.programs import beside

from gormapy import plot

program = beside(__file__)

pytest.importorskip("matplotlib")


@pytest.fixture
def trace(recorded):
    """Return a recording of 4 ranks."""
    return recorded(4, program.exchanges_and_puts)


def arrows(figure):
    """Return how many arrows of each kind a picture has."""
    from matplotlib.quiver import Quiver

    return {c.get_gid(): c.N for axes in figure.axes for c in axes.collections if isinstance(c, Quiver)}


def texts(figure):
    """Return all that is written in a picture."""
    from matplotlib.text import Text

    return [text.get_text() for text in figure.findobj(Text)]


def test_pictures(trace, tmp_path):
    figure = plot.timeline(trace)
    assert arrows(figure) == {"messages": 24, "one-sided operations": 16}
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == [f"rank {r}" for r in range(4)]
    few = plot.timeline(trace, arrows=5)
    assert arrows(few) == {"messages": 5, "one-sided operations": 5}
    assert "5 of 24 messages drawn; 5 of 16 one-sided operations drawn" in texts(few)
    fence = trace.calls["begin"][trace.calls["name"] == "Win.Fence"].min()
    assert "messages" not in arrows(plot.timeline(trace, begin=fence))
    assert arrows(plot.timeline(trace, ranks=[0, 1]))["messages"] == 6
    plot.timeline(trace, begin=1e6).savefig(tmp_path / "empty.png")

    counts, moved = plot.transfers(trace)
    expected = np.zeros((4, 4), int)
    for rank in range(4):
        expected[rank, (rank + 1) % 4] += 6 + 3
        expected[(rank + 1) % 4, rank] += 1  # fetched
    assert (counts == expected).all()
    assert moved.sum() == 4 * (9 * 80 + 8)
    assert plot.transfers(trace, "messages")[0].sum() == 24
    assert plot.transfers(trace, "one-sided")[0].sum() == 16
    written = texts(plot.matrix(trace))
    assert written.count("9") >= 4
    with pytest.raises(ValueError, match="messages"):
        plot.matrix(trace, "everything")

    figure = plot.windows(trace)
    shown = [axes for axes in figure.axes if axes.get_visible()]
    assert [axes.get_title() for axes in shown] == [f"rank {r}'s part" for r in range(4)]
    for rank, axes in enumerate(shown):
        bars = [path.get_extents() for bars in axes.collections for path in bars.get_paths()]
        origin = (rank - 1) % 4
        assert sorted((bar.x0, bar.width) for bar in bars) == sorted([(0, 8), *[(80 * origin, 80)] * 3])
        assert len({bar.y0 for bar in bars}) == 4  # an epoch each
    window = int(trace.operations["window"][0])
    assert len(plot.windows(trace, window, targets=[2]).axes) == 1
    with pytest.raises(ValueError, match="not in the recording"):
        plot.windows(trace, 10**6)

    figure = plot.waits(trace)
    axes = figure.axes[0]
    of_barrier = next(c for c in axes.containers if c.get_label() == "Barrier")
    widths = [bar.get_width() for bar in of_barrier]
    assert max(widths[1:]) > widths[0]  # rank 0 is who they waited for

    for name in ("timeline", "matrix", "windows", "waits"):
        png = getattr(plot, name)(str(trace.path))._repr_png_()
        assert png.startswith(b"\x89PNG") and len(png) > 5000


def test_empty_recording(recorded):
    trace = recorded(1, "from gormapy import MPI")
    for name in ("timeline", "matrix", "windows", "waits"):
        assert getattr(plot, name)(trace)._repr_png_().startswith(b"\x89PNG")


def test_many_calls_are_thinned_out(recorded):
    trace = recorded(2, program.many_calls_are_thinned_out)
    assert len(trace.operations) == 8000
    figure = plot.timeline(trace)
    assert arrows(figure) == {"one-sided operations": 300}
    bars = sum(len(c.get_paths()) for c in figure.axes[0].collections if c.get_gid() is None)
    assert bars < 4500
    assert plot.windows(trace)._repr_png_()


def test_command_lines(trace, tmp_path):
    def run(*command, status=0):
        done = subprocess.run(
            [sys.executable, "-m", *map(str, command)], env=environment(), capture_output=True, text=True, timeout=120
        )
        assert done.returncode == status, done
        return done.stdout + done.stderr

    assert "Sendrecv" in run("gormapy.trace", trace.path)
    rows = run("gormapy.trace", trace.path, "--csv", "messages").splitlines()
    assert len(rows) == 25 and rows[0].startswith("source,dest,tag")
    run("gormapy.plot", trace.path, "-o", tmp_path / "p.png", "--what", "all")
    assert {path.name for path in tmp_path.glob("p.*.png")} == {
        f"p.{name}.png" for name in ("timeline", "matrix", "windows", "waits")
    }
    assert "gormapy.plot:" in run("gormapy.plot", tmp_path / "absent.json", "-o", tmp_path / "q.png", status=1)
    assert "gormapy.trace:" in run("gormapy.trace", tmp_path / "p.waits.png", status=1)
