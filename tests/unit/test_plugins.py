"""A package of somebody else's adds to the tables by entry points: installed by pip, from the example of the page."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from prose import ROOT

EXAMPLE = ROOT / "examples/plugin"
PAGE = ROOT / "docs/extending.md"


def python(code: str, *folders: Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([*map(str, folders), *sys.path])
    env = os.environ | {"PYTHONPATH": path} | environment
    return subprocess.run([sys.executable, "-c", code], env=env, cwd=cwd, capture_output=True, text=True)


def installed(source: Path, to: Path) -> Path:
    pytest.importorskip("hatchling")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    quiet = os.environ | {"PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    done = subprocess.run([*command, "--target", str(to), str(source)], env=quiet, capture_output=True, text=True)
    if "No module named pip" in done.stderr:
        pytest.skip("pip is not installed")
    assert done.returncode == 0, done.stderr
    return to


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = shutil.copytree(EXAMPLE, tmp_path_factory.mktemp("source") / "plugin")
    return installed(source, tmp_path_factory.mktemp("site"))


def test_the_page_shows_the_whole_package() -> None:
    text = PAGE.read_text("utf-8")
    lines = 0
    for path in ("pyproject.toml", "bellcrank_workshop.py"):
        code = (EXAMPLE / path).read_text("utf-8")
        assert code.strip() in text, f"docs/extending.md does not show {path} as it is"
        lines += len([line for line in code.splitlines() if line.strip()])
    assert lines <= 75


USE = """
import numpy as np, bellcrank as bc
from bellcrank.build import stages
arm = bc.zoo.load("geared_arm")
assert np.round(arm.gravity_torque([0.0]), 4).tolist() == [-0.981]
planar = bc.zoo.planar3r()
q = [0.3, -0.5, 0.8]
mine, usual = (bc.kernel(planar, "mass_matrix", method=name)(q) for name in ("with_rotors", "crba"))
more = mine - usual
assert np.allclose(more, 0.1 * np.eye(3)), more
assert len(bc.simulate(arm, seconds=0.01, integrator="heun", step=1e-3)) == 11
open("three.rods", "w").write("1 0.5 0.25")
assert bc.read("three.rods").nv == 3
from bellcrank.actuators import ACTUATORS
assert "Winch" in ACTUATORS
from bellcrank.excavators.machines import MACHINES
assert MACHINES["workshop"]().mechanism.nv == 3
assert stages.untouched() and stages.sources()
k = bc.kernel(planar, "mass_matrix", method="with_rotors")
print(k.from_cache, k([0.3, -0.5, 0.8])[0, 0])
"""


def test_it_is_there_by_name_and_its_source_is_in_the_key(package: Path, tmp_path: Path) -> None:
    own = {"BELLCRANK_CACHE": str(tmp_path / "cache")}
    first = python(USE, package, cwd=tmp_path, **own)
    assert first.returncode == 0, first.stderr
    again = python(USE, package, cwd=tmp_path, **own)
    assert again.stdout.split()[0] == "True"  # found on disk, by what was asked for and the package's source
    changed = tmp_path / "changed"
    shutil.copytree(package, changed)
    text = (changed / "bellcrank_workshop.py").read_text("utf-8")
    (changed / "bellcrank_workshop.py").write_text(text.replace("(0.1 if i == j", "(0.2 if i == j"), "utf-8")
    code = USE.replace("0.1 * np.eye", "0.2 * np.eye")
    other = python(code, changed, cwd=tmp_path, **own)
    assert other.returncode == 0, other.stderr
    assert float(other.stdout.split()[1]) == pytest.approx(float(again.stdout.split()[1]) + 0.1)


def test_without_packages(package: Path, tmp_path: Path) -> None:
    code = "import bellcrank as bc; print('geared_arm' in bc.zoo.names())"
    assert python(code, package, cwd=tmp_path).stdout.strip() == "True"
    assert python(code, package, cwd=tmp_path, BELLCRANK_WITHOUT_PACKAGES="1").stdout.strip() == "False"


def test_a_broken_package_is_named_and_left_out(tmp_path: Path) -> None:
    info = tmp_path / "broken-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[bellcrank.joint]\nnone = no_such_module:Joint\n"
        "[bellcrank.integrator]\nodd = math:pi\n[bellcrank.hat]\nx = math:pi\n"
    )
    code = "import bellcrank as bc; print(bc.zoo.pendulum().nv)"
    done = python(code, tmp_path, cwd=tmp_path)
    assert done.stdout.strip() == "1"
    told = " ".join(done.stderr.split())
    assert 'the package "broken" offers the joint "none" (no_such_module:Joint), which cannot be used' in told
    assert "expected a bellcrank.integrate.Integrator" in told
    assert 'offers the hat "x"' in told
    assert "uninstall broken" in told
