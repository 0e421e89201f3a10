"""Makes a release as far as one computer can: packages, tried in an empty environment; and says what remains.

.venv/bin/python .ci/release.py            (make release)
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
LARGEST = 3e6  # bytes of the wheel
PAGE_S = 60.0  # s for the page to come


def main() -> None:
    version = agreed()
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", str(DIST), str(ROOT))
    (wheel,), (archive,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    size = wheel.stat().st_size
    if size > LARGEST:
        sys.exit(f"{wheel.name} has {size / 1e6:.1f} MB; expected at most {LARGEST / 1e6:g}.")
    print(f"{wheel.name}: {size / 1e6:.2f} MB; {archive.name}: {archive.stat().st_size / 1e6:.2f} MB")
    tried(wheel)
    print(f"""
What remains, for a person:
  make test-all, and CI green on every system
  git tag -s v{version} && git push origin v{version}    the workflow publish.yml builds again and publishes
  a new section "Unreleased" in CHANGELOG.md, and the next number in src/bellcrank/version.py""")


def agreed() -> str:
    """The version, which stands in one place; changelog and citation say the same."""
    found = re.search(r'__version__ = "(.+)"', (ROOT / "src/bellcrank/version.py").read_text("utf-8"))
    assert found is not None
    version = found[1]
    for name, line in (("CHANGELOG.md", f"## {version}"), ("CITATION.cff", f"version: {version}")):
        if line not in (ROOT / name).read_text("utf-8").splitlines():
            sys.exit(f'{name} has no line "{line}"; src/bellcrank/version.py says {version}. Write it.')
    return version


def run(*command: str, **more: object) -> None:
    print("$", " ".join(command), flush=True)
    subprocess.run(command, check=True, **more)  # type: ignore[call-overload]


def tried(wheel: Path) -> None:
    """In an environment that has nothing, with no Node and no compiler on the path."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        venv.create(home / "env", with_pip=True)
        tools = home / "env" / ("Scripts" if os.name == "nt" else "bin")
        python, bellcrank = str(tools / "python"), str(tools / "bellcrank")
        environment = {"PATH": str(tools), "HOME": folder, "BELLCRANK_CACHE": str(home / "cache")}
        environment |= {key: os.environ[key] for key in ("PIP_INDEX_URL", "SYSTEMROOT") if key in os.environ}
        run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"{wheel}[cockpit]")
        run(python, "-m", "pip", "check")
        run(bellcrank, "doctor", env=environment, cwd=folder)
        started(python, environment, folder)
        served(bellcrank, environment, folder)


def started(python: str, environment: dict[str, str], folder: str) -> None:
    """Follows the pages of Start literally: their Python from top to bottom, and every line after a $."""
    for page in sorted((ROOT / "docs/start").glob("*.md")):
        blocks = re.findall(r"^```(\w+)\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
        code = "\n".join(text for language, text in blocks if language == "python")
        (Path(folder) / "page.py").write_text(code, "utf-8")
        print(f"following {page.relative_to(ROOT)}", flush=True)
        run(python, "page.py", env=environment, cwd=folder)
        for line in re.findall(r"^\$ (.*)$", "".join(t for x, t in blocks if x == "console"), re.MULTILINE):
            run("/bin/sh", "-c", line, env=environment, cwd=folder, stdout=subprocess.DEVNULL)
    assert (Path(folder) / "run.html").stat().st_size > 100_000


def served(bellcrank: str, environment: dict[str, str], folder: str) -> None:
    """`bellcrank drive excavator` shows the page, with its script."""
    command = [bellcrank, "drive", "excavator", "--port", "0", "--no-browser", "--seconds", "20"]
    print("$", " ".join(command), flush=True)
    process = subprocess.Popen(command, env=environment, cwd=folder, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        end = time.monotonic() + PAGE_S
        for line in process.stdout:
            if found := re.search(r"http://[\w.]+:\d+/", line):
                break
            if time.monotonic() > end:
                sys.exit("bellcrank drive printed no address.")
        else:
            sys.exit("bellcrank drive ended without an address.")
        page = fetched(found[0])
        script = re.search(r'src="([^"]+\.js)"', page)
        if "<canvas" not in page and script is None:
            sys.exit("bellcrank drive serves no page.")
        size = len(fetched(found[0] + (script[1].lstrip("./") if script else "cockpit.js")))
        print(f"the page is there, and its script: {size / 1e6:.2f} MB")
    finally:
        process.terminate()
        process.wait(30)


def fetched(address: str) -> str:
    with urllib.request.urlopen(address, timeout=20) as answer:
        return str(answer.read().decode())


if __name__ == "__main__":
    main()
