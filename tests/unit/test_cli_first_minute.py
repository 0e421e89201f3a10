"""First steps of a user: examples in every help, completion, `bellcrank doctor`, and code for older processors."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

import bellcrank as bc
from bellcrank.cli import app, doctor
from bellcrank.cli.options import EXAMPLES, complete_mechanism, complete_method, complete_quantity
from bellcrank.emit.llvm import host

COMMANDS = get_command(app).commands  # type: ignore[attr-defined]


def test_every_command_has_examples_and_no_others_are_there() -> None:
    told = "a new command has a row in EXAMPLES of cli/options.py: what people would type"
    assert set(EXAMPLES) - {""} == set(COMMANDS), told


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_are_in_the_help_and_are_understood(name: str) -> None:
    shown = CliRunner().invoke(app, [name, "--help"]).stdout
    for line in EXAMPLES[name]:
        assert line in shown
        program, command, *arguments = shlex.split(line)
        assert (program, command) == ("bellcrank", name)
        COMMANDS[name].make_context(name, arguments)  # an unknown option or a missing argument is an error


def test_command_alone_prints_examples() -> None:
    done = CliRunner().invoke(app, [])
    assert "bellcrank drive excavator" in done.output
    for line in EXAMPLES[""]:
        assert line in done.output


def test_wrong_example_is_detected() -> None:
    with pytest.raises(Exception, match="reprot"):
        COMMANDS["show"].make_context("show", ["excavator", "--reprot"])


# -- the Tab key


def test_names_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for file in ("arm.urdf", "notes.txt", ".hidden.urdf"):
        (tmp_path / file).write_text("")
    (tmp_path / "robots").mkdir()
    monkeypatch.chdir(tmp_path)
    assert set(complete_mechanism("exc")) == {"excavator", "excavator_flexible", "excavator_linkage"}
    assert "arm.urdf" in complete_mechanism("ar")
    assert {"robots/", "arm.urdf", *bc.zoo.names()} == set(complete_mechanism(""))
    assert complete_mechanism("no/such/folder/") == []
    assert complete_quantity("mass_matrix_f") == ["mass_matrix_factors"]
    assert complete_method("au") == ["auto"]


def test_a_shell_completes() -> None:
    environment = os.environ | {
        "_BELLCRANK_COMPLETE": "complete_bash",
        "COMP_WORDS": "bellcrank show pum",
        "COMP_CWORD": "2",
    }
    code = "import sys; sys.argv = ['bellcrank']; from bellcrank.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.stdout.split() == ["puma600", "puma_saha"], done.stderr


# -- doctor


def test_doctor_finds_this_computer_sound() -> None:
    done = CliRunner().invoke(app, ["doctor", "--json"])
    assert done.exit_code == 0, done.output
    found = {row["what"]: row for row in json.loads(done.stdout)}
    assert found["a kernel"]["state"] == "ok"
    assert bc.__version__ in found["bellcrank"]["here"]
    assert {"lanes", "cores", "cache", "real time", "page of drive", "GPU", "C compiler"} <= set(found)
    for row in found.values():
        assert row["state"] == "ok" or row["remedy"], f"{row} says what is missing, and not what to do"


def test_doctor_prints_remedies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def installed(package: str) -> bool:
        return package != "matplotlib"

    monkeypatch.setattr(doctor, "_installed", installed)
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None)
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(doctor.importlib.metadata, "requires", lambda name: ['matplotlib>=3; extra == "plot"', "numpy"])
    (plot,) = doctor._extras()
    assert (plot.state, plot.remedy) == ("-", 'pip install "bellcrank[plot]"')
    (compiler,) = doctor._compiler()
    assert "bellcrank[fmu]" in compiler.remedy
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    monkeypatch.setenv("BELLCRANK_CACHE", str(tmp_path / "open"))
    (cache,) = doctor._cache()
    assert cache.state == "-"
    assert "BELLCRANK_CACHE" in cache.remedy


def test_wrong_kernel_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "CHECKS", (doctor._kernels,))
    monkeypatch.setattr(doctor.bc, "kernel", lambda *_, **__: lambda *_: [1.0])
    done = CliRunner().invoke(app, ["doctor"])
    assert done.exit_code == 1
    assert "BROKEN" in done.stdout


# -- an older processor


SCRIPT = """
import numpy as np, bellcrank as bc
from bellcrank.emit.llvm.host import host
arm = bc.zoo.puma600()
q, v, tau = arm.random(seed=0, batch=37)
k = bc.kernel(arm, "forward_dynamics", method="aba")
a = k(q, v, tau)
one = np.array([k(*row) for row in zip(q, v, tau)])
print(host().cpu, host().lanes("float64"), float(abs(a - one).max() / abs(a).max()))
run = bc.simulate(bc.zoo.chain(2), seconds=0.2, q0=[0.5, 1.0], method="crba")
np.save("a.npy", a); np.save("run.npy", run.q)
"""


@pytest.mark.parametrize(("level", "lanes"), [("x86-64-v3", 4), ("x86-64-v2", 2)])
def test_without_wide_vectors_results_are_the_same(level: str, lanes: int, tmp_path: Path) -> None:
    """Results are the same without AVX-512, and without AVX2 and fused multiplications."""
    import numpy as np

    needs, _ = host.PROCESSOR_LEVELS.get(level, ("", 0))
    if not host.llvm().get_host_cpu_features().get(needs):
        pytest.skip(f"this processor has no {needs}")
    environment = os.environ | {"BELLCRANK_CPU": level, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    name, found, apart = done.stdout.split()
    assert (name, int(found)) == (level, lanes)
    assert float(apart) < 1e-13
    arm = bc.zoo.puma600()
    q, v, tau = arm.random(seed=0, batch=37)
    mine = bc.kernel(arm, "forward_dynamics", method="aba")(q, v, tau)
    assert abs(np.load(tmp_path / "a.npy") - mine).max() < 1e-12 * abs(mine).max()
    run = bc.simulate(bc.zoo.chain(2), seconds=0.2, q0=[0.5, 1.0], method="crba")
    assert abs(np.load(tmp_path / "run.npy") - run.q).max() < 1e-11


def test_missing_processor_raises() -> None:
    with pytest.raises(bc.InputError, match=r'"i486" in BELLCRANK_CPU|processor in BELLCRANK_CPU.*i486'):
        host.requested_level("i486", {})
    with pytest.raises(bc.InputError, match="this processor has no avx512f"):
        host.requested_level("x86-64-v4", {"avx2": True})
