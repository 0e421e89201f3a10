"""FMUs, as another program sees them: FMPy validates, simulates, rolls back and differentiates them."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.emit.c.exported_program import ExportedProgram
from bellcrank.errors import CompileError, InputError
from bellcrank.excavators.machines import MACHINES
from bellcrank.exporting import compilers
from bellcrank.exporting.export_content import effort_driven
from targets.test_c99 import CC, needs_cc, read_by_others, run
from targets.test_export_c import WARNINGS

fmpy = pytest.importorskip("fmpy", reason="FMPy is not installed")
validation = pytest.importorskip("fmpy.validation", reason="FMPy is not installed")
both = pytest.mark.parametrize("version", [2, 3])


def plant() -> bc.System:
    """Two links with a free mass, a spring that remembers nothing, a state of the control, and an output."""
    b = bc.Builder('arm <of> "mine" & co')
    b.body("upper", mass=bc.parameter("upper.mass", 2.0, "kg"), com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.1))
    b.joint("a/b", "revolute", "ground", "upper", axis=(0, 1, 0), damping=0.3)
    b.body("lower", mass=1.0, com=(0, 0, -0.4), inertia=(0.05, 0.05, 0.05))
    b.joint("elbow", "revolute", "upper", "lower", point=(0, 0, -1), axis=(0, 1, 0), damping=0.2)

    def control(t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
        return [3.0 * u[0] - 2.0 * q[0], x[0] - 0.5 * v[1]], [u[1] - q[1]]

    return bc.system(
        b.build(), control=control, inputs={"push": 0.5, "<want>": 0.2}, states={"sum": 0.1},
        outputs={"height": lambda t, q, v, x, u: bc.cos(q[0]) + bc.cos(q[0] + q[1])},
    )  # fmt: skip


@contextmanager
def instance(path: Path, kind: str = "CoSimulation") -> Iterator[tuple[Any, dict[str, int]]]:
    """An instance of the FMU after its initialisation, and its value references."""
    about = fmpy.read_model_description(str(path))
    folder = fmpy.extract(str(path))
    made = fmpy.instantiate_fmu(folder, about, fmi_type=kind)
    if about.fmiVersion == "2.0":
        made.setupExperiment(startTime=0.0)
    made.enterInitializationMode()
    made.exitInitializationMode()
    try:
        yield made, {v.name: v.valueReference for v in about.modelVariables}
    finally:
        made.terminate()
        made.freeInstance()
        shutil.rmtree(folder)


def get(made: Any, references: list[int]) -> list[float]:
    found = made.getReal(references) if hasattr(made, "getReal") else made.getFloat64(references)
    return list(found)


def set_(made: Any, references: list[int], values: list[float]) -> None:
    (made.setReal if hasattr(made, "setReal") else made.setFloat64)(references, values)


@needs_cc
@both
def test_fmu_is_valid_and_both_kinds_give_the_native_run(version: int, tmp_path: Path) -> None:
    s = plant()
    path = bc.export(s, tmp_path / "it.fmu", to=f"fmu{version}", step=2e-3)
    assert validation.validate_fmu(str(path)) == []
    mine = {"push": 1.0, "<want>": -0.4}
    native = bc.simulate(s, 1.0, inputs=mine, parameters={"upper.mass": 3.0}, q0=[0.3, -0.2], step=2e-3, every=0.01)
    names = ["a/b.q", "elbow.q", "a/b.v", "elbow.v", "sum", "height", "a/b.a", "elbow.tau"]
    given = mine | {"upper.mass": 3.0, "a/b.q": 0.3, "elbow.q": -0.2}
    for kind, tolerance in (("CoSimulation", 1e-12), ("ModelExchange", 1e-5)):
        found = fmpy.simulate_fmu(
            str(path), stop_time=1.0, output_interval=0.01, start_values=given, output=names, fmi_type=kind,
            relative_tolerance=1e-9,
        )  # fmt: skip
        for name in names:
            size = np.abs(native[name]).max()
            np.testing.assert_allclose(found[name], native[name], rtol=0, atol=tolerance * size, err_msg=name)


@needs_cc
@both
def test_states_roll_back_to_the_bit_and_instances_are_apart(version: int, tmp_path: Path) -> None:
    path = bc.export(plant(), tmp_path / "it.fmu", to=f"fmu{version}", integrator="abm4")
    with instance(path) as (one, at), instance(path) as (other, _):
        watched = [at[name] for name in ("a/b.q", "elbow.v", "height")]
        rest = get(other, watched)
        one.doStep(0.0, 0.01)
        kept = one.getFMUstate() if version == 2 else one.getFMUState()
        data = one.serializeFMUstate(kept) if version == 2 else one.serializeFMUState(kept)
        one.doStep(0.01, 0.05)
        first = get(one, watched)
        set_(one, [at["push"]], [9.0])
        one.doStep(0.06, 0.05)
        assert get(one, watched) != first
        back = one.deSerializeFMUstate(data) if version == 2 else one.deserializeFMUState(data)
        (one.setFMUstate if version == 2 else one.setFMUState)(back)
        one.doStep(0.01, 0.05)
        assert get(one, watched) == first
        assert get(other, watched) == rest
        one.reset()
        assert get(one, watched) == rest
        for state in (kept, back):
            (one.freeFMUstate if version == 2 else one.freeFMUState)(state)


@needs_cc
@both
def test_steps_of_any_length_arrive(version: int, tmp_path: Path) -> None:
    path = bc.export(plant(), tmp_path / "it.fmu", to=f"fmu{version}", step=1e-3)
    with instance(path) as (made, at):
        for t, seconds in ((0.0, 0.0105), (0.0105, 0.0002), (0.0107, 0.0893)):
            made.doStep(t, seconds)
        assert abs(get(made, [at["time"]])[0] - 0.1) < 1e-12
        native = bc.simulate(plant(), 0.1, step=1e-3)
        assert abs(get(made, [at["a/b.q"]])[0] - native["a/b.q"][-1]) < 1e-9


@pytest.mark.parametrize("chosen", [False, True])
@pytest.mark.parametrize("form", ["minimal", "projected", "lagrange"])
def test_machine_with_events_uses_adaptive_steps_only_on_request(form: str, chosen: bool) -> None:
    """Its sources divide communication steps otherwise where steps are chosen."""
    noted = [bc.Event("noted", lambda t, q, v, x, u: t - 0.1, "record")]
    program = bc.Simulator(bc.zoo.four_bar(), "dopri5", form=form, events=noted).self_contained_program((chosen, True))
    assert ExportedProgram(program, 1e-3, 1e-6).adaptive is chosen


@needs_cc
@both
def test_derivatives_and_sparsity_equal_native_ones(version: int, tmp_path: Path) -> None:
    s = plant()
    path = bc.export(s, tmp_path / "it.fmu", to=f"fmu{version}")
    ports = bc.Simulator(s).program().ports
    point = {"t": 0.0, "y": ports.rest, "u": np.array([0.5, 0.2]), "p": np.array([2.0])}
    states, knowns = list(ports.elements), [*ports.elements, "push", "<want>", "upper.mass"]
    slopes = [ports.rate.jacobian("dy", x).evaluate(**point)[f"ddy_d{x}"] for x in ("y", "u", "p")]
    heights = [ports.outputs.jacobian("output", x).evaluate(**point)[f"doutput_d{x}"] for x in ("y", "u", "p")]
    expected = np.vstack([np.hstack(slopes), np.hstack(heights)])
    with instance(path, "ModelExchange") as (made, at):
        unknowns = [*(at[f"der({x})"] for x in states), at["height"]]
        which = [at[x] for x in knowns]
        for j, k in enumerate(which):
            got = made.getDirectionalDerivative(unknowns, [k], [1.0])
            np.testing.assert_allclose(got, expected[:, j], rtol=1e-12, atol=1e-12)
        for i, k in enumerate(unknowns if version == 3 else []):
            got = made.getAdjointDerivative([k], which, [1.0], len(which))
            np.testing.assert_allclose(got, expected[i], rtol=1e-12, atol=1e-12)
    about = fmpy.read_model_description(str(path))
    described = {x.variable.name: [d.name for d in x.dependencies] for x in (*about.derivatives, *about.outputs)}
    assert described["der(a/b.q)"] == ["a/b.v"]
    assert described["der(sum)"] == ["elbow.q", "<want>"]
    assert described["height"] == ["a/b.q", "elbow.q"]
    assert described["elbow.q"] == ["elbow.q"]


@needs_cc
def test_the_excavator_has_derivatives_both_ways_at_rest(tmp_path: Path) -> None:
    """Some of its outputs are distances that are zero there, which have none; they take nothing from the others."""
    s = MACHINES["excavator"]().system
    path = bc.export(s, tmp_path / "it.fmu", to="fmu3")
    states = list(bc.Simulator(s).program().ports.elements)
    with instance(path, "ModelExchange") as (made, at):
        rates, which = [at[f"der({x})"] for x in states], [at[x] for x in states]
        along = np.array([made.getDirectionalDerivative(rates, [k], [1.0]) for k in which]).T
        back = np.array([made.getAdjointDerivative([k], which, [1.0], len(which)) for k in rates])
    assert np.isfinite(along).all()
    np.testing.assert_allclose(back, along, rtol=1e-9, atol=1e-9 * np.abs(along).max())


@needs_cc
@pytest.mark.filterwarnings("ignore:export of .* as an FMU")  # exports that take a minute warn
@pytest.mark.parametrize("name", [n for n in MACHINES if n.startswith("excavator")])
def test_excavators(name: str, tmp_path: Path) -> None:
    s = MACHINES[name]().system
    path = bc.export(s, tmp_path / "it.fmu", to="fmu3")
    assert validation.validate_fmu(str(path)) == []
    levers = {n: s.defaults.get(n, 0.0) + 0.3 * (k < 2) for k, n in enumerate(s.inputs)}
    native = bc.simulate(s, 0.1, inputs=levers, form="projected", every=0.01)
    names = [x.name for x in s.states]
    joints = [f"{n}.q" for n in s.mechanism.columns[0]]
    found = fmpy.simulate_fmu(
        str(path),
        stop_time=0.1,
        output_interval=0.01,
        start_values=levers,
        output=joints + names,
        fmi_type="CoSimulation",
    )
    for some in (joints, names):
        size = max(np.abs(native[x]).max() for x in some)
        for x in some:
            np.testing.assert_allclose(found[x], native[x], rtol=0, atol=1e-12 * size, err_msg=x)
    most = 1_000_000 if name in ("excavator", "excavator_linkage") else 2_000_000  # the others have more bodies
    with zipfile.ZipFile(path) as archive:
        assert max(f.file_size for f in archive.filelist if f.filename.startswith("binaries/")) < most


# A rope of 200 links is no test of 1e-12: 1e-16 rad in its first angles are 5e-11 of its motion, and one of 20 6e-14.
ZOO = {
    "chain": "chain:6", "tree": "tree:6", "random_tree": "random_tree:6", "n_four_bar": "n_four_bar:3",
    "rope": "rope:20",
}  # fmt: skip
# Pushed with 1 N m, Andrews' mechanism, which weighs grams, turns at thousands of rad/s within milliseconds; beams that
# bend sway faster than steps of a millisecond can follow, which CVode does.
ZOO_STEPS = {"andrews": 1e-5, "excavator_flexible": 5e-5}


# Rounding grows in these: 1e-16 in the first coordinates of beams that bend, stiff as they are, is 3e-11 of the motion.
SENSITIVE = ("excavator_flexible",)


def moved_by_rounding(run: Callable[[Any], Any], q: Any) -> float:
    """Return the distance between motions whose starts agree to the last digit."""
    draw, right = np.random.default_rng(5), run(q)
    return max(float(np.abs(run(q + draw.uniform(-1e-16, 1e-16, len(q))) - right).max()) for _ in range(3))


@needs_cc
@both
@pytest.mark.filterwarnings("ignore:export of .* as an FMU")  # exports that take a minute warn
@pytest.mark.parametrize("name", bc.zoo.names())
def test_zoo(name: str, version: int, tmp_path: Path) -> None:
    """Every mechanism that we have, pushed: valid, by Co-Simulation the native run, by CVode the same motion."""
    m, step = bc.zoo.load(ZOO.get(name, name)), ZOO_STEPS.get(name, 1e-3)
    s, push, seconds = effort_driven(m), {f"{m.columns[1][0]}.effort": 1.0}, 50 * step
    path = bc.export(s, tmp_path / "it.fmu", to=f"fmu{version}", step=step)
    assert validation.validate_fmu(str(path)) == []
    names = [f"{n}.{x}" for x, columns in zip("qv", m.columns, strict=True) for n in columns]
    rest = bc.Simulator(s, form="projected").program().ports.rest[: m.nq]

    def went(q0: Any) -> Any:
        native = bc.simulate(s, seconds, q0=q0, inputs=push, form="projected", step=step, every=10 * step)
        assert native.stops[0].reason == "end"
        return np.column_stack([native.q, native.v])

    expected = went(rest)
    exact = 2.0 * moved_by_rounding(went, rest) / np.abs(expected).max() if name in SENSITIVE else 1e-12
    for kind, tolerance in (("CoSimulation", exact), ("ModelExchange", 1e-5)):
        found = fmpy.simulate_fmu(
            str(path), stop_time=seconds, output_interval=10 * step, start_values=push, output=names, fmi_type=kind,
            relative_tolerance=1e-9,
        )  # fmt: skip
        got = np.column_stack([found[x] for x in names])
        np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance * np.abs(expected).max(), err_msg=kind)


@needs_cc
@pytest.mark.parametrize("name", ["four_bar", "scissor", "track", "stewart"])
def test_a_second_departs_no_further_than_rounding_does(name: str, tmp_path: Path) -> None:
    """Loops of many bodies double a difference every few steps: starts that are the same to the last digit are 1e-11
    apart after a second of a track. Operations of C come in another order, which is no more than that.
    """
    m = bc.zoo.load(name)
    s, push = effort_driven(m), {f"{m.columns[1][0]}.effort": 1.0}
    rest = bc.Simulator(s, form="projected").program().ports.rest[: m.nq]

    def went(q0: Any) -> Any:
        native = bc.simulate(s, 1.0, q0=q0, inputs=push, form="projected", every=0.02)
        return np.column_stack([native.q, native.v])

    expected = went(rest)
    size = np.abs(expected).max()
    path = bc.export(s, tmp_path / "it.fmu", to="fmu2")
    names = [f"{n}.{x}" for x, columns in zip("qv", m.columns, strict=True) for n in columns]
    found = fmpy.simulate_fmu(
        str(path), stop_time=1.0, output_interval=0.02, start_values=push, output=names, fmi_type="CoSimulation"
    )
    most = max(1e-12, 2.0 * moved_by_rounding(went, rest) / size)
    np.testing.assert_allclose(np.column_stack([found[x] for x in names]), expected, rtol=0, atol=most * size)


@needs_cc
def test_too_long_step_fails_where_the_native_one_does(tmp_path: Path) -> None:
    """Andrews' mechanism, pushed with 1 N m, in steps of a millisecond: its loops cannot be followed for long."""
    m = bc.zoo.andrews()
    s, push = effort_driven(m), f"{m.columns[1][0]}.effort"
    rest = bc.Simulator(s, form="projected").program().ports.rest[: m.nq]
    native = bc.simulate(s, 0.05, q0=rest, inputs={push: 1.0}, form="projected")
    assert native.stops[0].reason == "not closed"
    with instance(bc.export(s, tmp_path / "it.fmu", to="fmu2")) as (made, at):
        set_(made, [at[push]], [1.0])
        for k in range(round(native.stops[0].time / 1e-3)):
            made.doStep(k * 1e-3, 1e-3)
        with pytest.raises(Exception, match=r"[dD]oStep"):
            made.doStep(native.stops[0].time, 1e-3)
        assert abs(get(made, [at["time"]])[0] - native.stops[0].time) < 1e-9


@needs_cc
@both
def test_sources_compile_without_a_warning(version: int, tmp_path: Path) -> None:
    assert CC is not None
    path = bc.export(plant(), tmp_path / "it.fmu", to=f"fmu{version}")
    with zipfile.ZipFile(path) as archive:
        archive.extractall(tmp_path / "it")
    folder = tmp_path / "it" / "sources"
    strict = [w for w in WARNINGS if w != "-Wmissing-prototypes"]  # the interface is called by name, from outside
    run(
        folder,
        CC,
        "-std=c99",
        "-O1",
        *strict,
        "-fPIC",
        "-shared",
        *(p.name for p in folder.glob("*.c")),
        "-o",
        "it.so",
        "-lm",
    )
    read_by_others(folder, strict, *(p.name for p in folder.glob("*.c")))


@needs_cc
def test_casadi_loads_the_fmu_with_the_native_jacobian(tmp_path: Path) -> None:
    casadi = pytest.importorskip("casadi", reason="CasADi is not installed")
    m = bc.zoo.planar3r()
    path = bc.export(m, tmp_path / "planar3r.fmu", to="fmu2")
    folder = tmp_path / "unpacked"
    with zipfile.ZipFile(path) as archive:
        archive.extractall(folder)
    dae = casadi.DaeBuilder("planar3r", str(folder))
    f = dae.create("f", ["x", "u"], ["ode"])
    J = f.factory("J", ["x", "u"], ["jac:ode:x"])
    q, v, tau = m.random(4)
    got = np.array(J(np.concatenate([q, v]), tau))
    by_q, by_v, _ = (bc.kernel(m, "forward_dynamics").derivative(x)(q, v, tau) for x in ("q", "v", "tau"))
    np.testing.assert_allclose(got[3:], np.hstack([by_q, by_v]), rtol=1e-10, atol=1e-10)


def test_other_platforms_need_zig(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilers.importlib.util, "find_spec", lambda name: True)
    other = "aarch64-linux" if compilers.host_platform() != "aarch64-linux" else "x86_64-linux"
    assert compilers.compiler_command(other)[1:6] == ["-m", "ziglang", "cc", "-target", compilers.PLATFORMS[other][0]]
    assert "ziglang" in compilers.compiler_command(compilers.host_platform(), portable=True)
    assert compilers.chosen_platforms("all") == list(compilers.PLATFORMS)
    assert compilers.chosen_platforms(()) == [compilers.host_platform()]


@pytest.mark.skipif(compilers.importlib.util.find_spec("ziglang") is None, reason="ziglang is not installed")
def test_binaries_for_every_platform(tmp_path: Path) -> None:
    told = list[str]()
    path = bc.export(bc.zoo.pendulum(), tmp_path / "it.fmu", to="fmu3", platforms="all", progress=told.append)
    assert told[0] == "tracing"
    assert told[-1] == "writing"
    assert len(told) == 2 + len(compilers.PLATFORMS)
    with zipfile.ZipFile(path) as archive:
        made = {f.filename.split("/")[1]: archive.read(f)[:4] for f in archive.filelist if "binaries/" in f.filename}
    magic = {"linux": b"\x7fELF", "windows": b"MZ", "darwin": b"\xcf\xfa\xed\xfe"}
    assert set(made) == set(compilers.PLATFORMS)
    assert all(head.startswith(magic[name.rpartition("-")[2]]) for name, head in made.items())


def test_failed_export_raises_and_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    m, path = bc.zoo.pendulum(), tmp_path / "it.fmu"
    with pytest.raises(InputError, match="takes steps"):
        bc.export(m, path, to="fmu2", functions=["mass_matrix"])
    with pytest.raises(InputError, match="platform"):
        bc.export(m, path, to="fmu2", platforms=["amiga"])
    monkeypatch.setattr(compilers.shutil, "which", lambda name: None)
    monkeypatch.setattr(compilers.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(CompileError, match="pip install ziglang"):
        bc.export(m, path, to="fmu2")
    monkeypatch.setattr(compilers, "compiler_command", lambda *target: ["false"])
    with pytest.raises(CompileError, match="failed"):
        bc.export(m, path, to="fmu2")
    assert not list(tmp_path.iterdir())


@needs_cc
def test_path_suffix_selects_the_target(tmp_path: Path) -> None:
    """A folder of C that is called plant.fmu would be found out by the program that cannot open it."""
    assert zipfile.is_zipfile(bc.export(bc.zoo.pendulum(), tmp_path / "plant.fmu"))
    assert list(bc.export(bc.zoo.pendulum(), tmp_path / "plant").glob("*.h"))
