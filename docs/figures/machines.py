"""Draw the figures of docs/machines/, as each page states them: `python docs/figures/machines.py [PAGE ...]`.

A page names the columns of its figure in a call of `run.plot` and the frames of its animation in a call of
`run.animation`. The figures of the robot A1 need the robots of the package example-robot-data.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
from svg_file import FOLDER, write

mpl.rcParams["path.simplify_threshold"] = 1.0  # points per path: the figures have up to eight columns of a long run

PAGES = FOLDER.parent / "machines"
ROBOT = "cmeel.prefix/share/example-robot-data/robots/a1_description/urdf/a1.urdf"


def arguments(text: str, method: str) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments of the first call of run.`method` in inline code of a page."""
    found = re.search(rf"`(run\.{method}\(.*?\))`", text)
    if found is None:
        raise SystemExit(f"the page has no run.{method}(...)")
    call = ast.parse(found[1], mode="eval").body
    assert isinstance(call, ast.Call)
    return [ast.literal_eval(x) for x in call.args], {str(k.arg): ast.literal_eval(k.value) for k in call.keywords}


def draw(text: str, code: str, name: str, scope: dict[str, Any]) -> None:
    """Run the `code` of a page, and write the figure and the animation that its `text` states, under `name`."""
    exec(compile(code, name, "exec"), scope)
    run = scope["run"]
    columns, _ = arguments(text, "plot")
    _, frames = arguments(text, "animation")
    write(run.plot(*columns), f"machines/{name}")
    run.animation(FOLDER / "machines" / f"{name}_moves.svg", **frames)


def main() -> None:
    """Draw the figures of the pages given on the command line, or of all."""
    chosen = sys.argv[1:]
    for page in sorted(PAGES.glob("*.md")):
        text = page.read_text("utf-8")
        code = re.search(r"```python\n(.*?)```", text, re.DOTALL)
        if code is not None and (not chosen or page.stem in chosen):
            draw(text, code[1], page.stem, {})
    robot = next((Path(p) / ROBOT for p in sys.path if (Path(p) / ROBOT).exists()), None)
    if robot is not None and (not chosen or "a1" in chosen):
        text = (PAGES / "walker.md").read_text("utf-8")
        (code_of_a1,) = re.findall(r"```py\n(.*?)```", text, re.DOTALL)
        code_of_a1 = re.sub(r"^run\.report.*$", "", code_of_a1, flags=re.MULTILINE)
        draw(text.partition("## A robot from its file")[2], code_of_a1, "a1", {"file": robot})


if __name__ == "__main__":
    main()
