"""A third-party package adds to the tables by entry points: the example of the documentation, installed by pip."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from bellcrank.content_digest.libraries import dependency_closure, distribution_files, file_stats, files_digest
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
from bellcrank.build import compilation
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
assert compilation.tables_as_shipped() and compilation.plugin_key()
k = bc.kernel(planar, "mass_matrix", method="with_rotors")
print(k.from_cache, k([0.3, -0.5, 0.8])[0, 0])
"""


def test_plugin_is_available_by_name_and_its_source_is_in_the_key(package: Path, tmp_path: Path) -> None:
    own = {"BELLCRANK_CACHE": str(tmp_path / "cache")}
    first = python(USE, package, cwd=tmp_path, **own)
    assert first.returncode == 0, first.stderr
    again = python(USE, package, cwd=tmp_path, **own)
    assert again.stdout.split()[0] == "True"  # found on disk by the request and the package's source
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


# -- the files of a package

PARTS = {
    "workshop/__init__.py": "class Rod: pass\n",
    "workshop/factors.py": "from pathlib import Path\nDATA = float((Path(__file__).parent / 'data.txt').read_text())\n",
    "workshop/data.txt": "1.0",
    "workshop_helpers/__init__.py": "from workshop_helpers.inner import INNER\n",
    "workshop_helpers/inner.py": "INNER = 1.0\n",
    "rotors.py": "from workshop.factors import DATA\nfrom workshop_helpers import INNER\nOWN = 1.0\n"
    "def mass_matrix(tree, q):\n"
    "    x = OWN + DATA + INNER\n"
    "    return [[x if i == j else 0.0 for j in range(tree.nv)] for i in range(tree.nv)]\n",
}
POINTS = "[bellcrank.mechanism]\nrod = workshop:Rod.__call__\n[bellcrank.method]\nrotors = rotors:mass_matrix\n"
EDITS = {
    "workshop/data.txt": "2.0",
    "workshop_helpers/inner.py": "INNER = 3.0\n",
    "rotors.py": PARTS["rotors.py"].replace("OWN = 1.0", "OWN = 4.0"),
}
ASK = """
import bellcrank as bc
k = bc.kernel(bc.zoo.planar3r(), "mass_matrix", method="rotors")
print(k.from_cache, k([0.1, 0.2, 0.3])[0, 0])
"""


def written(folder: Path, texts: dict[str, str]) -> None:
    """Write files whose times are old enough to be trusted."""
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, ns=(10**18, 10**18))


def distribution(site: Path, name: str, files: list[str], points: str = "", requires: str = "", **more: str) -> None:
    """Write a distribution as installers do."""
    about = f"{name.replace('-', '_')}-1.0.dist-info"
    about_it = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n" + (requires and f"Requires-Dist: {requires}\n")
    texts = {"METADATA": about_it, "entry_points.txt": points, **more}
    texts = {f"{about}/{file}": text for file, text in texts.items()}
    written(site, {**texts, f"{about}/RECORD": "".join(f"{file},,\n" for file in (*files, *texts))})


def workshop(site: Path, source: Path, how: str) -> None:
    """Install the package of PARTS in one of several ways; `source` is where it is edited."""
    written(source, PARTS)
    files = list(PARTS) if how == "installed" else ["workshop.pth"]
    if how != "installed":
        written(site, {"workshop.pth": f"{source}\n"})
    if how != "helpers apart":
        distribution(site, "workshop", files, POINTS)
        return
    apart = {name: text for name, text in PARTS.items() if name.startswith("workshop_helpers")}
    helpers = source.with_name("helpers")
    written(helpers, apart)
    shutil.rmtree(source / "workshop_helpers")
    written(site, {"helpers.pth": f"{helpers}\n"})
    origin = f'{{"url": "{helpers.as_uri()}", "dir_info": {{"editable": true}}}}'
    distribution(site, "workshop-helpers", ["helpers.pth"], **{"direct_url.json": origin})
    distribution(site, "workshop", files, POINTS, "workshop_helpers>=1")


ADD = "import site, sys; site.addsitedir(sys.argv[1])\n"


@pytest.mark.parametrize("how", ["installed", "editable", "helpers apart"])
def test_digest_covers_all_files_of_a_distribution(how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A distribution consists of all its files, including those of an editable install.

    Hidden and compiled files are left out.
    """
    site = tmp_path / "site"
    source = site if how == "installed" else tmp_path / "source"
    workshop(site, source, how)
    monkeypatch.syspath_prepend(str(site))
    dist = metadata.distribution("workshop")

    def told() -> str:
        found = dependency_closure(dist, ())
        assert [x.name for x in found] == ["workshop", "workshop-helpers"][: 1 + (how == "helpers apart")]
        files = {path: name for x in found for path, name in distribution_files(x).items()}
        return files_digest(file_stats(files), lambda name: None, lambda name, digest: None)

    first = told()
    roots = [folder for folder in (source, source.with_name("helpers")) if folder.exists()]
    for root in roots:
        if how != "installed":
            written(root, {"new.py": "", ".git/index": "x", "workshop/__pycache__/a.pyc": "x", "env/pyvenv.cfg": ""})
            assert told() != first
            (root / "new.py").unlink()
    assert told() == first
    for name in PARTS:
        (path,) = [root / name for root in roots if (root / name).exists()]
        written(path.parent, {path.name: PARTS[name] + " "})
        changed = told()
        assert changed != first, name
        first = changed


def test_a_digest_of_files_is_read_once(tmp_path: Path) -> None:
    kept: dict[str, str] = {}
    written(tmp_path, {"a.py": "x"})
    files = {str(tmp_path / "a.py"): "a.py"}
    first = files_digest(file_stats(files), kept.get, kept.__setitem__)
    (name,) = kept
    kept[name] = "known"
    assert files_digest(file_stats(files), kept.get, kept.__setitem__) == "known"
    (tmp_path / "b.py").write_text("y")
    os.utime(tmp_path / "b.py", ns=(10**18, 10**18))
    os.replace(tmp_path / "b.py", tmp_path / "a.py")  # of the same size and time
    assert files_digest(file_stats(files), kept.get, kept.__setitem__) not in (first, "known")


@pytest.mark.parametrize("how", ["installed", "editable", "helpers apart"])
def test_a_change_of_any_file_of_a_package_is_seen(how: str, tmp_path: Path) -> None:
    """A change of any file of a package is noticed: a second module, a helper package or distribution, data."""
    site = tmp_path / "site"
    source = site if how == "installed" else tmp_path / "source"
    workshop(site, source, how)

    def asked() -> list[str]:
        env = os.environ | {
            "BELLCRANK_CACHE": str(tmp_path / "cache"), "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": os.pathsep.join(sys.path),
        }  # fmt: skip
        command = [sys.executable, "-c", ADD + ASK, str(site)]
        done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    assert asked() == ["False", "3.0"]
    assert asked() == ["True", "3.0"]
    for name, expected in (("workshop/data.txt", "4.0"), ("workshop_helpers/inner.py", "6.0"), ("rotors.py", "9.0")):
        where = source.with_name("helpers") if (source.with_name("helpers") / name).exists() else source
        written(where, {name: EDITS[name]})
        assert asked() == ["False", expected], name
    assert asked() == ["True", "9.0"]


SET = """
import bellcrank as bc
def told():
    k = bc.kernel(bc.zoo.planar3r(), "mass_matrix", method="rotors")
    print(k.from_cache, k([0.1, 0.2, 0.3])[0, 0])
told()
import rotors
rotors.OWN = 7.0
told()
told()
rotors.OWN = 1.0
told()
"""


def test_a_number_of_a_package_that_is_set_while_it_runs(tmp_path: Path) -> None:
    site = tmp_path / "site"
    workshop(site, site, "installed")
    env = os.environ | {"BELLCRANK_CACHE": str(tmp_path / "cache"), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", ADD + SET, str(site)]
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["False", "3.0", "False", "9.0", "True", "9.0", "True", "3.0"]
