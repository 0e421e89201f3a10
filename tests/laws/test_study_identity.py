"""A study never gives the rows of another one: whatever decides a number is a part of its identity, which goes by
content. Every argument of bc.study and every field of what it takes has an entry here; a new one fails until it has.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
import json
import os
import random
import re
import shutil
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.actuators import PD
from bellcrank.actuators.actuator import Actuator, limited
from bellcrank.errors import BellcrankError, InputError, ReadError
from bellcrank.graph.program import Ports, Program
from bellcrank.model import Body, Joint, Mechanism
from bellcrank.sim.run.batch_execution import Batch
from bellcrank.sim.settings import Plan
from bellcrank.sim.system.systems import System
from bellcrank.studies import run_batches, study_identity
from bellcrank.studies.study_folder import StudyFolder, chunk_ranges
from bellcrank.studies.study_setup import StudySetup

distributed = pytest.importorskip("distributed")
pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with distributed.LocalCluster(processes=False, n_workers=1, dashboard_address="127.0.0.1:0") as made:
        yield made


def pendulum(damping: float = 0.1, mass: Any = 1.0) -> bc.Mechanism:
    b = bc.Builder("pendulum")
    b.body("bob", mass=mass, com=(0, 0, -1), inertia=(0.1, 0.1, 0.1))
    b.joint("hinge", "revolute", "ground", "bob", axis=(0, 1, 0), damping=damping)
    return b.build()


def servo(
    mass: float = 1.0, aim: float = 0.1, integral: float = 0.0, gain: float = 3.0, stiffness: float = 5.0,
    output: Callable[..., Any] | None = None,
) -> bc.System:  # fmt: skip
    return bc.system(
        pendulum(mass=bc.parameter("load", mass, "kg")),
        [PD("hinge", stiffness, 1.0)],
        lambda t, q, v, x, u: ({"hinge": u["aim"] + gain * x["integral"]}, [u["aim"] - q[0]]),
        inputs={"aim": aim},
        states={"integral": integral},
        outputs={"seen": output or (lambda t, q, v, x, u: 2.0 * q[0])},
    )


def sampling(held: float = 0.0, memory: float = 0.0, every: float = 0.02, delay: float = 0.0) -> bc.System:
    made = bc.Sampled(
        lambda t, q, v, x, u: ({"push": x["push"] + u["aim"]}, {"count": x["count"] + 1.0}), every,
        outputs={"push": held}, states={"count": memory}, delay=delay,
    )  # fmt: skip
    return bc.system(
        pendulum(), control=lambda t, q, v, x, u: {"hinge": x["push"]}, inputs={"aim": 0.1}, sampled=[made]
    )


def floor(height: float = -0.2, direction: int = -1, action: str = "stop", factor: float = -0.5) -> list[bc.Event]:
    then = (lambda t, q, v, x, u: {"v": factor * v}) if action == "switch" else None
    return [bc.Event("floor", lambda t, q, v, x, u: q[0] - height, action, direction, then)]


def wind(scale: float) -> Callable[..., Any]:
    return lambda t, rng: scale * rng.normal(size=t.size)


USUAL: dict[str, Any] = {
    "over": {"hinge.q": [0.1, 0.2]}, "seconds": 0.04, "step": 0.01, "keep": "rows", "every": 0.02,
}  # fmt: skip
NOISY = {"input_step": 0.02, "inputs": {"aim": wind(1.0)}}
WORDY = {"keep": None, "every": None, "summary": ["max(hinge.v)"]}

# By name: what a study is asked with, and what is changed. None: the plant of the first study.
CHANGES: dict[str, tuple[Callable[[], Any], dict[str, Any], Callable[[], Any] | None, dict[str, Any]]] = {
    "nominal of a free number": (servo, {}, lambda: servo(mass=1.5), {}),
    "default of an input": (servo, {}, lambda: servo(aim=0.2), {}),
    "initial state of a controller": (servo, {}, lambda: servo(integral=0.3), {}),
    "number in a closure": (servo, {}, lambda: servo(gain=4.0), {}),
    "actuator": (servo, {}, lambda: servo(stiffness=6.0), {}),
    "output function": (servo, {}, lambda: servo(output=lambda t, q, v, x, u: 3.0 * q[0]), {}),
    "initial output of a sampled controller": (sampling, {}, lambda: sampling(held=0.5), {}),
    "memory of a sampled controller": (sampling, {}, lambda: sampling(memory=2.0), {}),
    "period of a sampled controller": (sampling, {}, lambda: sampling(every=0.01), {}),
    "delay of a sampled controller": (sampling, {}, lambda: sampling(delay=0.02), {}),
    "mechanism": (pendulum, {}, lambda: pendulum(damping=0.2), {}),
    "threshold of an event": (pendulum, {"events": floor()}, None, {"events": floor(-0.1)}),
    "direction of an event": (pendulum, {"events": floor()}, None, {"events": floor(direction=1)}),
    "action of an event": (pendulum, {"events": floor()}, None, {"events": floor(action="record")}),
    "what an event does": (
        pendulum, {"events": floor(action="switch")}, None, {"events": floor(action="switch", factor=-0.9)}
    ),
    "no event": (pendulum, {"events": floor()}, None, {"events": []}),
    "random input": (servo, NOISY, None, {"inputs": {"aim": wind(2.0)}}),
    "input": (servo, {"inputs": {"aim": 0.3}}, None, {"inputs": {"aim": 0.4}}),
    "input_step": (servo, NOISY, None, {"input_step": 0.04}),
    "over": (pendulum, {}, None, {"over": {"hinge.q": [0.1, 0.3]}}),
    "runs": (pendulum, {"over": {"hinge.q": bc.uniform(0, 1)}, "runs": 2}, None, {"runs": 3}),
    "points": (pendulum, {"over": {"hinge.q": bc.uniform(0, 1)}, "runs": 2}, None, {"points": "latin"}),
    "seed": (servo, NOISY, None, {"seed": 1}),
    "seconds": (pendulum, {}, None, {"seconds": 0.06}),
    "summary": (pendulum, WORDY, None, {"summary": ["min(hinge.v)"]}),
    "keep": (pendulum, {}, None, {"keep": "final", "every": None}),
    "every": (pendulum, {}, None, {"every": 0.04}),
    "q0": (pendulum, {"over": {"hinge.v": [0.1]}}, None, {"q0": {"hinge": 0.2}}),
    "v0": (pendulum, {}, None, {"v0": [0.2]}),
    "x0": (servo, {}, None, {"x0": {"integral": 0.1}}),
    "parameters": (servo, {}, None, {"parameters": {"load": 3.0}}),
    "integrator": (pendulum, {}, None, {"integrator": "euler"}),
    "step": (pendulum, {}, None, {"step": 0.02}),
    "tolerance": (pendulum, {"integrator": "dopri5", "step": None}, None, {"tolerance": 1e-9}),
    "max_steps": (pendulum, {"integrator": "dopri5", "step": None}, None, {"max_steps": 1000}),
    "method": (pendulum, {"method": "crba"}, None, {"method": "aba"}),
    "form": (bc.zoo.four_bar, {"form": "minimal", "over": {"a.v": [0.0]}}, None, {"form": "projected"}),
    "target": (pendulum, {"target": "cpu"}, None, {"target": "auto"}),
}  # fmt: skip
DECIDE_NOTHING = {"to", "cluster", "workers", "threads", "chunk", "progress"}
IN_THE_PLANT = {"plant", "events", "inputs"}  # which have entries by what they consist of


def test_every_argument_has_an_entry() -> None:
    assert set(inspect.signature(bc.study).parameters) <= {*CHANGES, *DECIDE_NOTHING, *IN_THE_PLANT}


@pytest.mark.parametrize("name", CHANGES)
def test_change_of_a_study_input_is_rejected(name: str, cluster: Any, tmp_path: Path) -> None:
    plant, asked, other, change = CHANGES[name]
    if name == "form":
        joint = bc.zoo.four_bar().columns[1][0]
        asked = {**asked, "over": {f"{joint}.v": [0.0]}}
    first = {**USUAL, **asked, "to": tmp_path / "s", "cluster": cluster}
    done = bc.study(plant(), **first)
    files = {path: path.read_bytes() for path in (tmp_path / "s/runs").iterdir()}
    with pytest.raises(InputError, match="contains a different study"):
        bc.study((other or plant)(), **{**first, **change})
    assert {path: path.read_bytes() for path in (tmp_path / "s/runs").iterdir()} == files
    stamps = [path.stat().st_mtime_ns for path in files]
    again = bc.study(plant(), **{**first, "chunk": 7, "threads": 2})  # nothing that decides a number has changed
    assert again.table().equals(done.table())
    assert [path.stat().st_mtime_ns for path in files] == stamps


def test_contents_of_a_file_of_samples_and_of_a_table(cluster: Any, tmp_path: Path) -> None:
    file, table = tmp_path / "aim.csv", tmp_path / "points.csv"
    file.write_text("t,aim\n0,0.1\n0.02,0.2\n")
    table.write_text("hinge.q\n0.1\n0.2\n")
    one: dict[str, Any] = {**USUAL, "over": {"aim": [str(file)]}, "input_step": 0.02, "to": tmp_path / "a"}
    two: dict[str, Any] = {**USUAL, "over": None, "points": table, "to": tmp_path / "b"}
    for asked in (one, two):
        bc.study(servo(), cluster=cluster, **asked)
    file.write_text("t,aim\n0,0.1\n0.02,0.3\n")
    table.write_text("hinge.q\n0.1\n0.3\n")
    for asked in (one, two):
        with pytest.raises(InputError, match="contains a different study"):
            bc.study(servo(), cluster=cluster, **asked)


def test_an_interrupted_study_is_never_mixed(cluster: Any, tmp_path: Path) -> None:
    asked: dict[str, Any] = {**USUAL, "over": {"hinge.q": [0.1, 0.2, 0.3, 0.4]}, "chunk": 1, "cluster": cluster}
    done = bc.study(servo(), to=tmp_path / "s", **asked)
    other = bc.study(servo(gain=4.0), to=tmp_path / "t", **asked)
    files = sorted((tmp_path / "s/runs").iterdir())
    files[2].unlink()
    with pytest.raises(InputError, match=r"its plant or arguments \(plant.control\) changed since"):
        bc.study(servo(gain=4.0), to=tmp_path / "s", **asked)
    shutil.copy(sorted((tmp_path / "t/runs").iterdir())[1], files[1])  # whole and sealed, and of another study
    shutil.copy(files[0], files[3])  # of this study, and other runs of it
    with pytest.raises(ReadError, match="damaged or not there"):
        done.table()
    again = bc.study(servo(), to=tmp_path / "s", **asked)
    assert again.table().equals(bc.study(servo(), to=tmp_path / "u", **asked).table())
    assert not again.table().equals(other.table())


def test_other_files_add_no_rows(cluster: Any, tmp_path: Path) -> None:
    asked: dict[str, Any] = {**USUAL, "to": tmp_path / "s", "cluster": cluster}
    before = bc.study(pendulum(), **asked).table()
    (file,) = (tmp_path / "s/runs").iterdir()
    shutil.copy(file, file.with_name(f"{file.stem} (conflicted copy).parquet"))
    shutil.copy(file, file.with_name("runs-000000002.parquet"))
    with pytest.warns(RuntimeWarning, match="not part of the study: 'runs-000000000 .conflicted copy"):
        after = bc.study(pendulum(), **asked)
    assert after.table().equals(before)


def test_study_without_manifest_continues_from_its_rows(cluster: Any, tmp_path: Path) -> None:
    asked: dict[str, Any] = {**USUAL, "to": tmp_path / "s", "cluster": cluster}
    before = bc.study(pendulum(), **asked).table()
    (file,) = (tmp_path / "s/runs").iterdir()
    stamp = file.stat().st_mtime_ns
    (tmp_path / "s/study.json").unlink()
    with pytest.raises(InputError, match="and no study"):
        bc.study(pendulum(0.3), **asked)
    assert bc.study(pendulum(), **asked).table().equals(before)
    assert file.stat().st_mtime_ns == stamp


# -- damaged manifests


def _damaged(text: str, rng: random.Random) -> bytes:
    """A bit, a cut, a piece twice or gone, or a field with another value."""
    if rng.randrange(5) == 0:
        found = json.loads(text)
        key = rng.choice([k for k in found if k != "checksum"])
        values = [None, 3, "x", {}, 0.5, found[key] * 2 if isinstance(found[key], int | str | list) else []]
        found[key] = rng.choice([x for x in values if x != found[key]])
        return json.dumps(found).encode()
    raw = bytearray(text.encode())
    i = rng.randrange(len(raw))
    piece = slice(i, i + rng.randrange(1, 40))
    kind = rng.randrange(4)
    if kind == 0:
        raw[i] ^= 1 << rng.randrange(8)
    elif kind == 1:
        del raw[i:]
    elif kind == 2:
        del raw[piece]
    else:
        raw[i:i] = raw[piece]
    return bytes(raw)


def _written(folder: Path, text: str) -> Path:
    folder.mkdir()
    (folder / "study.json").write_text(text, "utf-8")
    return folder


def test_a_damaged_manifest_is_refused(cluster: Any, tmp_path: Path) -> None:
    asked: dict[str, Any] = {**USUAL, "to": tmp_path / "s", "cluster": cluster, "chunk": 1}
    before = bc.study(pendulum(), **asked)
    file, rng = tmp_path / "s/study.json", random.Random(1)
    text = file.read_text("utf-8")
    whole = StudyFolder(tmp_path / "s").manifest()
    refused: list[str] = []
    for k in range(250):
        file.write_bytes(_damaged(text, rng))
        try:
            same = StudyFolder(tmp_path / "s").manifest() == whole
        except ReadError as error:
            refused.append(str(error))
            continue
        assert same  # the damage was in what JSON passes over, such as the spaces between its words
        if k % 50 == 0:
            assert bc.study(pendulum(), **asked).table().equals(before.table())
    assert len(refused) > 200
    assert all("remove" in words for words in refused)
    with pytest.raises(ReadError):
        bc.study(pendulum(), **{**asked, "to": _written(tmp_path / "t", text.replace('"chunk": 1', '"chunk": 2'))})
    file.write_text(text, "utf-8")
    assert chunk_ranges(before.manifest) == [(0, 1), (1, 2)]
    assert bc.study(pendulum(), **asked).table().equals(before.table())


# -- fields


def _setup() -> StudySetup:
    from bellcrank.studies.sampling_plans import points
    from bellcrank.studies.study_setup import study_setup

    made = points({"hinge.q": [0.1]}, None, None, 0)
    rest: dict[str, Any] = {"seconds": 0.02, "given": {}, "summary": (), "keep": None, "seed": 0, "events": floor()}
    return study_setup(servo(), made, {"step": 0.01}, **rest)


def _changed(thing: Any, field: str) -> Any:
    other = copy.copy(thing)
    object.__setattr__(other, field, ("something else", 1))
    return other


@cache
def _things() -> dict[type, Any]:
    setup = _setup()
    ready = setup.simulator({}).prepared(0.02, batch=2, step=0.01)
    plant = setup.plants[""]
    found = [plant, plant.mechanism, plant.actuators[0], setup.events[0], sampling().sampled[0], ready.plan]
    found += [ready.runs, ready.program, ready.program.ports, plant.mechanism.bodies[0], plant.mechanism.joints[0]]
    return {type(x): x for x in found}


TAKEN_APART = (System, Mechanism, PD, bc.Event, bc.Sampled, Plan, Batch, Program, Ports, Body, Joint)


@pytest.mark.parametrize(("kind", "field"), [(k, f.name) for k in TAKEN_APART for f in dataclasses.fields(k)])
def test_every_field_is_a_part_of_the_identity(kind: type, field: str) -> None:
    """Also one that is added tomorrow: what is left out is left out by name, here as well as there."""
    thing = _things()[kind]
    decides = (kind, field) not in {(Mechanism, "report"), (Plan, "where")}
    digest, other = (study_identity._content_digest().digest(x) for x in (thing, _changed(thing, field)))
    assert (digest != other) == decides


@pytest.mark.parametrize("field", [f.name for f in dataclasses.fields(StudySetup)])
def test_every_field_of_a_setup_and_of_its_systems(field: str) -> None:
    setup = _setup()
    before = study_identity.setup_digests(setup)
    if field == "plants":
        for inner in dataclasses.fields(System):
            other = dataclasses.replace(setup, plants={"": _changed(setup.plants[""], inner.name)})
            assert [
                n for n, _, _ in study_identity.digest_differences(before, study_identity.setup_digests(other))
            ] == [f"plant.{inner.name}"]
        return
    value = {"new": 1.0} if isinstance(getattr(setup, field), dict) else ("something else",)
    other = dataclasses.replace(setup, **{field: value})
    assert any(
        n.startswith(field)
        for n, _, _ in study_identity.digest_differences(before, study_identity.setup_digests(other))
    )


# -- what cannot be identified, and what is not sent along


def test_unidentifiable_inputs_are_rejected(tmp_path: Path) -> None:
    numbers = (float(k) for k in range(1000))

    def draw(t: Any, rng: Any) -> Any:
        return np.full(t.size, next(numbers))

    with pytest.raises(InputError, match=r"in given.inputs, aim.numbers is of the class generator"):
        study_identity.setup_digests(dataclasses.replace(_setup(), given={"inputs": {"aim": draw}}))


def test_random_inputs_come_from_their_generator_alone(cluster: Any, tmp_path: Path) -> None:
    def draw(t: Any, rng: Any) -> Any:
        return np.random.normal(size=t.size)

    asked: dict[str, Any] = {**USUAL, "to": tmp_path / "s", "cluster": cluster, "input_step": 0.02}
    with pytest.raises(InputError, match="aim gave different numbers for the same times and the same random generator"):
        bc.study(servo(), inputs={"aim": draw}, **asked)


# -- random inputs, whose functions may depend on what no digest of their source covers

SCALE = types.ModuleType("scale_of_the_wind")  # stands for a user's module that is changed while a study waits


def _from_file(folder: Path) -> tuple[Callable[[], float], Callable[[float], None]]:
    file = folder / "scale.txt"
    return lambda: float(file.read_text()), lambda x: (file.write_text(str(x)), None)[1]


def _from_environment(folder: Path) -> tuple[Callable[[], float], Callable[[float], None]]:
    def change(x: float) -> None:
        os.environ["BELLCRANK_TEST_SCALE"] = str(x)

    return lambda: float(os.environ["BELLCRANK_TEST_SCALE"]), change


def _from_module(folder: Path) -> tuple[Callable[[], float], Callable[[float], None]]:
    sys.modules["scale_of_the_wind"] = SCALE
    return (
        lambda: float(vars(sys.modules["scale_of_the_" + "wind"])["value"]),
        lambda x: vars(SCALE).update(value=x),
    )


OUTSIDE = {"file": _from_file, "environment": _from_environment, "module": _from_module}


def _gust(scale: Callable[[], float], affected: int) -> Callable[..., Any]:
    """Return a random input that depends on `scale` only in those runs whose first number rounds to `affected`."""

    def gust(t: Any, rng: Any) -> Any:
        n = rng.integers(0, 8, t.size).astype(float)
        return n * scale() if n[0] == affected else n

    return gust


def _first_numbers(seed: int, runs: int) -> list[int]:
    """First number that `_gust` draws in each run."""
    return [int(np.random.default_rng([seed, 0, k]).integers(0, 8, 2)[0]) for k in range(runs)]


@pytest.mark.parametrize("outside", OUTSIDE)
@pytest.mark.parametrize("run", [0, 1, 5, 11])
def test_drawn_inputs_are_compared_in_every_run(outside: str, run: int, cluster: Any, tmp_path: Path) -> None:
    scale, change = OUTSIDE[outside](tmp_path)
    first = _first_numbers(3, 12)
    asked: dict[str, Any] = {
        **USUAL, "over": {"hinge.q": np.linspace(0.1, 0.2, 12)}, "to": tmp_path / "s", "cluster": cluster, "seed": 3,
        "chunk": 4, "input_step": 0.02, "inputs": {"aim": _gust(scale, first[run])},
    }  # fmt: skip
    change(1.0)
    done = bc.study(servo(), **asked).table()
    files = {path: path.read_bytes() for path in sorted((tmp_path / "s/runs").iterdir())}
    assert bc.study(servo(), **asked).table().equals(done)
    for interrupted in (False, True):
        if interrupted:  # the chunk that the change does not concern is not there
            gone = next(k for k in range(3) if first[run] not in first[4 * k : 4 * k + 4] or k != run // 4)
            next(path for path in files if path.name == f"runs-{4 * gone:09d}.parquet").unlink()
        change(9.0)
        with pytest.raises(InputError, match=r"contains a different study.*(random input aim|\(input aim\))"):
            bc.study(servo(), **asked)
        assert all(path.read_bytes() == data for path, data in files.items() if path.exists())
        change(1.0)
    assert bc.study(servo(), **asked).table().equals(done)
    assert {path: path.read_bytes() for path in sorted((tmp_path / "s/runs").iterdir())} == files


def test_partial_comparison_is_reported(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large study is compared for a bounded time: first one run of every file, then others, in random order."""
    asked: dict[str, Any] = {
        **USUAL, **NOISY, "over": {"hinge.q": np.linspace(0.1, 0.2, 300)}, "chunk": 150, "to": tmp_path / "s",
        "cluster": cluster,
    }  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        done = bc.study(servo(), **asked).table()
        assert bc.study(servo(), **asked).table().equals(done)
        monkeypatch.setattr(run_batches, "MAX_COMPARISON_SECONDS", 0.0)
        with pytest.warns(RuntimeWarning, match=r"random inputs of 2 of 300 stored .* other 298 were not drawn"):
            assert bc.study(servo(), **asked).table().equals(done)


def test_a_run_whose_draw_is_refused_is_compared_as_well(cluster: Any, tmp_path: Path) -> None:
    scale, change = _from_file(tmp_path)

    def gust(t: Any, rng: Any) -> Any:
        n = rng.normal(size=t.size)
        if n[0] > scale():
            raise InputError("this wind is too strong")
        return n

    change(0.0)
    asked: dict[str, Any] = {
        **USUAL, "over": {"hinge.q": np.linspace(0.1, 0.2, 20)}, "to": tmp_path / "s", "cluster": cluster,
        "input_step": 0.02, "inputs": {"aim": gust}, "seed": 5,
    }  # fmt: skip
    done = bc.study(servo(), **asked)
    refused = [np.random.default_rng([5, 0, k]).normal(size=2)[0] > 0.0 for k in range(20)]
    assert not refused[0]
    assert (done["stop"] == "refused").tolist() == refused
    assert set(done["message"][refused]) == {"this wind is too strong"}
    assert bc.study(servo(), **asked).table().equals(done.table())
    change(100.0)
    with pytest.raises(InputError, match="random input aim of the runs"):
        bc.study(servo(), **asked)


def test_worker_with_other_random_inputs_stores_nothing(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bellcrank.studies import dask_engine

    real = dask_engine.draw_inputs

    def elsewhere(*arguments: Any) -> Any:
        return [{name: x + 1.0 for name, x in run.items()} for run in real(*arguments)]

    monkeypatch.setattr(dask_engine, "draw_inputs", elsewhere)
    asked: dict[str, Any] = {**USUAL, **NOISY, "to": tmp_path / "s", "cluster": cluster}
    with pytest.raises(BellcrankError, match="a worker would compute different numbers: its random input aim"):
        bc.study(servo(), **asked)
    assert list((tmp_path / "s/runs").iterdir()) == []


def test_an_input_that_changes_while_the_study_runs(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scale, change = _from_file(tmp_path)
    change(1.0)
    add = StudyFolder.add_chunk

    def add_and_change(self: StudyFolder, first: int, data: bytes) -> None:
        add(self, first, data)
        change(2.0)

    monkeypatch.setattr(StudyFolder, "add_chunk", add_and_change)
    asked: dict[str, Any] = {
        **USUAL, "over": {"hinge.q": np.linspace(0.1, 0.2, 60)}, "to": tmp_path / "s", "cluster": cluster, "chunk": 1,
        "input_step": 0.02, "inputs": {"aim": lambda t, rng: scale() * rng.normal(size=t.size)},
    }  # fmt: skip
    with pytest.raises(BellcrankError, match=r"random input aim of the run 0|its random input aim"):
        bc.study(servo(), **asked)


def test_later_runs_come_from_their_generator_alone_as_well(cluster: Any, tmp_path: Path) -> None:
    def draw(t: Any, rng: Any) -> Any:
        n = rng.normal(size=t.size)
        return n if n[0] > 0 else np.random.normal(size=t.size)

    asked: dict[str, Any] = {**USUAL, "over": {"hinge.q": np.linspace(0.1, 0.2, 20)}, "input_step": 0.02}
    for seed in (1, 2):
        with pytest.raises(InputError, match="aim gave different numbers for the same times and the same random gener"):
            bc.study(servo(), inputs={"aim": draw}, seed=seed, to=tmp_path / "s", cluster=cluster, **asked)


# -- equations that depend on what no digest of their source covers


@pytest.mark.parametrize("outside", OUTSIDE)
def test_error_names_the_changed_equation(outside: str, cluster: Any, tmp_path: Path) -> None:
    scale, change = OUTSIDE[outside](tmp_path)
    asked: dict[str, Any] = {**USUAL, "over": {"hinge.q": [0.1]}, "cluster": cluster}

    def plant() -> bc.System:
        return bc.system(
            pendulum(),
            control=lambda t, q, v, x, u: {"hinge": -scale() * q[0]},
            outputs={"seen": lambda t, q, v, x, u: q[0] + scale() * v[0]},
        )

    def outcome(before: float, after: float, to: str) -> str:
        change(before)
        bc.study(plant(), to=tmp_path / to, **asked)
        change(after)
        with pytest.raises(InputError, match="contains a different study: its equations") as told:
            bc.study(plant(), to=tmp_path / to, **asked)
        return str(told.value)

    told = outcome(3.0, 9.0, "a")
    assert re.search(r"the rate of hinge\.v: .*number -?3 became -?9", told), told
    assert re.search(r"the output .* 1 more: .*number 3 became 9", told), told
    assert "|||" not in told
    told = outcome(1.0, 9.0, "b")  # 1.0 * q is q, so an operation is new
    assert re.search(r"the rate of hinge\.v: .*operation mul \d+ times instead of \d+", told), told


def test_the_refusal_names_the_group_of_runs(cluster: Any, tmp_path: Path) -> None:
    scale, change = _from_file(tmp_path)
    change(3.0)
    plants = {
        "calm": servo(),
        "stormy": bc.system(
            pendulum(), control=lambda t, q, v, x, u: {"hinge": scale() * u["aim"]}, inputs={"aim": 0.1}
        ),
    }
    asked: dict[str, Any] = {**USUAL, "over": {"variant": ["calm", "stormy"]}, "cluster": cluster, "to": tmp_path / "s"}
    bc.study(plants, **asked)
    change(4.0)
    with pytest.raises(InputError, match=r"its equations \(variant stormy: the rate of hinge\.v: .*3 became 4"):
        bc.study(plants, **asked)


@dataclasses.dataclass(frozen=True)
class Pull(Actuator):
    """One of the user's own."""

    most: float = 10.0

    def __call__(self, t: Any, q: Any, v: Any, x: Any, command: Any) -> tuple[Any, Any]:
        return limited(STRENGTH * command, self.most), []


STRENGTH = 2.0


def pulled() -> bc.System:
    return bc.system(pendulum(), [Pull("hinge")], lambda t, q, v, x, u: {"hinge": 1.0})


def test_a_worker_with_another_global_computes_nothing(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The class is sent by name, and its module there may be another."""
    from bellcrank.studies import dask_engine

    sent = dask_engine.unpack_setup

    def elsewhere(*arguments: Any) -> Any:
        monkeypatch.setitem(globals(), "STRENGTH", 3.0)
        return sent(*arguments)

    monkeypatch.setattr(dask_engine, "unpack_setup", elsewhere)
    with pytest.raises(BellcrankError, match=r"different numbers: plant\.actuators is different there"):
        bc.study(pulled(), **USUAL, to=tmp_path / "s", cluster=cluster)


def test_worker_with_other_equations_computes_nothing(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bellcrank.studies import study

    real = study.program_digest
    monkeypatch.setattr(study, "program_digest", lambda *arguments: f"{real(*arguments)}x")
    with pytest.raises(BellcrankError, match="it traces different equations from the same plant"):
        bc.study(pendulum(), **USUAL, to=tmp_path / "s", cluster=cluster)


def test_auto_keeps_its_first_method(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cheapest method is measured, and may differ on another day or computer."""
    asked: dict[str, Any] = {**USUAL, "to": tmp_path / "s", "cluster": cluster}
    plant = bc.zoo.planar3r()
    asked["over"] = {f"{plant.columns[0][0]}.q": [0.1, 0.2]}
    before = bc.study(plant, **asked)
    (first,) = before.manifest["methods"].values()
    from bellcrank.dynamics import METHODS
    from bellcrank.sim.program import tree_dynamics

    real = tree_dynamics.auto_method
    other = METHODS["crba" if first == "aba" else "aba"]
    monkeypatch.setattr(tree_dynamics, "auto_method", lambda m, r: other if r.method == "auto" else real(m, r))
    assert bc.study(plant, **asked).table().equals(before.table())
    assert list(bc.study(plant, **{**asked, "to": tmp_path / "t"}).manifest["methods"].values()) == [other.name]


def test_the_old_manifest_is_refused(cluster: Any, tmp_path: Path) -> None:
    (tmp_path / "study.json").write_text(json.dumps({"study": 1, "chunk": 64, "sessions": 1, "wall": 1.0}))
    with pytest.raises(ReadError, match="a study by an older version of bellcrank"):
        bc.study(pendulum(), **USUAL, to=tmp_path, cluster=cluster)
