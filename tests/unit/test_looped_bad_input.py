"""Invalid loops, from every input format and in every use, raise an error that names the loop and a remedy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

import bellcrank as bc
from bellcrank.cli import app
from bellcrank.errors import BellcrankError

# A crank of 1 m and a second one at the distance `apart`. Loops join a point of one to a point of the other.
Pairs = dict[str, tuple[str, float, str, float]]  # loop: body and distance along it, twice
APART: Pairs = {"gap": ("left", 1.0, "right", 1.0)}
ITSELF: Pairs = {"gap": ("left", 1.0, "left", 0.5)}
CONTRARY: Pairs = {"one": ("left", 1.0, "right", 0.0), "two": ("left", 0.9, "right", 0.3)}


def built(apart: float, loops: Pairs, _: Path) -> bc.Mechanism:
    b = bc.Builder("bad")
    at = {"left": 0.0, "right": apart}
    for name, x in at.items():
        b.body(name, mass=1, com=(x + 0.5, 0, 0), inertia=(0.1, 0.1, 0.1))
        b.joint(f"{name}_hinge", "revolute", "ground", name, point=(x, 0, 0), axis=(0, 0, 1))
    for name, (a, out_a, c, out_c) in loops.items():
        b.close(name, "spherical", a, c, point_a=(at[a] + out_a, 0, 0), point_b=(at[c] + out_c, 0, 0))
    return b.build()


def _urdf(apart: float, inside: str) -> str:
    text = '<robot name="bad"><link name="ground"/>'
    for name, x in (("left", 0.0), ("right", apart)):
        text += f"""<link name="{name}"><inertial><origin xyz="0.5 0 0"/><mass value="1"/>
          <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
          <joint name="{name}_hinge" type="continuous"><parent link="ground"/><child link="{name}"/>
          <origin xyz="{x} 0 0"/><axis xyz="0 0 1"/></joint>"""
    return f"{text}{inside}</robot>"


def loop_joint(apart: float, loops: Pairs, folder: Path) -> Path:
    inside = "".join(
        f'<loop_joint name="{name}" type="spherical"><link1 link="{a}" xyz="{x} 0 0" rpy="0 0 0"/>'
        f'<link2 link="{b}" xyz="{y} 0 0" rpy="0 0 0"/></loop_joint>'
        for name, (a, x, b, y) in loops.items()
    )
    return _written(folder / "bad.urdf", _urdf(apart, inside))


def constraint(apart: float, loops: Pairs, folder: Path) -> Path:
    inside = "".join(
        f'<constraint name="{name}" type="spherical"><predecessor link="{a}"><origin xyz="{x} 0 0"/></predecessor>'
        f'<successor link="{b}"><origin xyz="{y} 0 0"/></successor></constraint>'
        for name, (a, x, b, y) in loops.items()
    )
    return _written(folder / "bad.urdf", _urdf(apart, inside))


def beside(apart: float, loops: Pairs, folder: Path) -> Path:
    """Write YAML beside the file: its loops are between links, and have their names."""
    tips, pairs = "", []
    for name, (a, x, b, y) in loops.items():
        ends = []
        for body, out, end in ((a, x, "a"), (b, y, "b")):
            ends.append(f"{name}_{end}")
            tips += f"""<link name="{name}_{end}"/><joint name="{name}_{end}_weld" type="fixed"><parent link="{body}"/>
              <child link="{name}_{end}"/><origin xyz="{out} 0 0"/></joint>"""
        pairs.append(f"[{', '.join(ends)}]")
    _written(folder / "bad.yaml", f"closed_loop: [{', '.join(pairs)}]\ntype: [{', '.join(['3d'] * len(pairs))}]\n")
    return _written(folder / "bad.urdf", _urdf(apart, tips))


def mjcf(apart: float, loops: Pairs, folder: Path) -> Path:
    pytest.importorskip("mujoco")
    sites: dict[str, str] = {"left": "", "right": ""}
    equal = ""
    for name, (a, x, b, y) in loops.items():
        sites[a] += f'<site name="{name}.1" pos="{x} 0 0"/>'
        sites[b] += f'<site name="{name}.2" pos="{y} 0 0"/>'
        equal += f'<connect name="{name}" site1="{name}.1" site2="{name}.2"/>'
    bodies = "".join(
        f'<body name="{name}" pos="{x} 0 0"><joint name="{name}_hinge" axis="0 0 1"/>'
        f'<inertial pos="0.5 0 0" mass="1" diaginertia="0.1 0.1 0.1"/>{sites[name]}</body>'
        for name, x in (("left", 0.0), ("right", apart))
    )
    text = f"<mujoco><worldbody>{bodies}</worldbody><equality>{equal}</equality></mujoco>"
    return _written(folder / "bad.xml", text)


def _written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


Spelling = Callable[[float, Pairs, Path], Path | bc.Mechanism]
SPELLINGS: list[Spelling] = [built, loop_joint, constraint, beside, mjcf]


def made(source: Path | bc.Mechanism) -> bc.Mechanism:
    return source if isinstance(source, bc.Mechanism) else bc.read(source)


USES: dict[str, Callable[[bc.Mechanism], object]] = {
    "assemble": lambda m: m.assemble(),
    "simulate": lambda m: bc.simulate(m, 0.01),
    "simulator": lambda m: bc.Simulator(m, form="projected").run(0.01),
    "kernel": lambda m: bc.kernel(m, "forward_dynamics"),
    "attribute": lambda m: m.loop_forces([0.0] * m.nq, [0.0] * m.nv, [0.0] * m.nv),
    "analysis": lambda m: m.loop_analysis,
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize(("apart", "loops"), [(3.0, APART), (1.0, CONTRARY)], ids=["cannot close", "contradiction"])
def test_loops_that_cannot_close(use: str, apart: float, loops: Pairs, spelling: Spelling, tmp_path: Path) -> None:
    m = made(spelling(apart, loops, tmp_path))
    with pytest.raises(BellcrankError) as error:
        USES[use](m)
    said = str(error.value)
    assert all(name in said for name in loops), said
    assert "these equations are not satisfied" in said
    assert "points, axes and lengths" in said  # the remedy


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_loop_within_one_body_raises(spelling: Spelling, tmp_path: Path) -> None:
    with pytest.raises(BellcrankError) as error:
        made(spelling(1.0, ITSELF, tmp_path))
    said = str(error.value)
    assert 'loop "gap' in said
    assert "left" in said
    assert "different bodies" in said or "Leave it out" in said


@pytest.mark.filterwarnings("ignore:.*it cannot move:RuntimeWarning")  # a triangle cannot move
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_start_far_from_assembly(spelling: Spelling, tmp_path: Path) -> None:
    """A start 1 m from closure is assembled.

    Two cranks of 1 m on pivots 1 m apart, both along x, close to a triangle.
    """
    m = made(spelling(1.0, APART, tmp_path))
    with pytest.raises(BellcrankError, match=r"q0 does not close the loops of .*gap.*: x 1 .*assemble\(q0\)"):
        bc.simulate(m, 0.01)
    with pytest.raises(BellcrankError, match=r"gap.*Without fixed joints it closes, with left_hinge at"):
        m.assemble(fixed=["left_hinge", "right_hinge"])
    q, _ = m.assemble()
    assert abs(m.closure(q)).max() < 1e-10


@pytest.mark.filterwarnings("ignore:.*it cannot move:RuntimeWarning")  # the flat one cannot move
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_singular_start(spelling: Spelling, tmp_path: Path) -> None:
    """Two cranks of 1 m on pivots 2 m apart raise an error: they meet in one line, which is singular and immobile."""
    loops: Pairs = {"gap": ("left", 1.0, "right", -1.0)}
    m = made(spelling(2.0, loops, tmp_path))
    with pytest.raises(BellcrankError) as error:
        bc.simulate(m, 0.01)
    said = str(error.value)
    assert "singular configuration" in said
    assert 'worst in loop "gap' in said
    assert "condition number of C is" in said
    assert "Start slightly away from it" in said


@pytest.mark.parametrize("spelling", SPELLINGS[1:])
@pytest.mark.parametrize(("apart", "loops"), [(3.0, APART), (1.0, CONTRARY), (1.0, ITSELF)], ids=["3", "2", "1"])
def test_from_the_command_line(apart: float, loops: Pairs, spelling: Spelling, tmp_path: Path) -> None:
    path = str(spelling(apart, loops, tmp_path))
    emit = ["emit", path, "-t", "c", "-q", "forward_dynamics"]
    for command in (["simulate", path, "--seconds", "0.01"], ["count", path], emit):
        result = CliRunner(env={"COLUMNS": "400"}).invoke(app, command)
        assert result.exit_code == 2, (command, result.output)
        assert result.stdout == ""
        assert result.stderr.startswith("error: ")
        assert all(name in result.stderr for name in loops)
