"""MuJoCo's compiler in a separate process, since invalid models can make it hang or crash.

The process has a limit on time and memory; it leaves the compiled model in a file, and prints warnings or an error.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bellcrank.errors import ReadError
from bellcrank.lazy_import import optional_import

CPU_SECONDS = 60  # processor time; large meshes take a few
MEMORY_BYTES = 16 << 30

# Security: no part of a model is in this program; the model's path is an argument, or its text comes through stdin.
COMPILER_PROGRAM = """
import json, sys, warnings
try:
    import resource
    resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[3]), int(sys.argv[3])))
    resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[4]), int(sys.argv[4])))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
except (ImportError, ValueError, OSError):
    pass
import mujoco
said = []
mujoco.set_mju_user_warning(lambda message: said.append(str(message)))
warnings.showwarning = lambda message, *_, **__: said.append(str(message))
warnings.simplefilter("always")
try:
    if sys.argv[1]:
        spec = mujoco.MjSpec.from_file(sys.argv[1])
    else:
        spec = mujoco.MjSpec.from_string(sys.stdin.buffer.read().decode("utf-8", "replace"))
    mujoco.mj_saveModel(spec.compile(), sys.argv[2], None)
    print(json.dumps({"warnings": said}))
except BaseException as error:
    print(json.dumps({"error": f"{error}" or type(error).__name__}))
"""


def compile_model(text: str | None, source: str) -> tuple[Any, list[str]]:
    """Return the compiled model of `text`, or of the file `source` with all that it includes; and MuJoCo's warnings."""
    mujoco = optional_import("mujoco", "mjcf", f"{source}: a MuJoCo model (MJCF), which")
    with tempfile.TemporaryDirectory(prefix="bellcrank-") as folder:
        file = os.path.join(folder, "model.mjb")
        arguments = [source if text is None else "", file, str(CPU_SECONDS), str(MEMORY_BYTES)]
        command = [sys.executable, "-P", "-c", COMPILER_PROGRAM, *arguments]
        model_bytes = (text or "").encode("utf-8", "replace")
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        process = subprocess.run(command, input=model_bytes, capture_output=True, check=False, env=environment)
        answer = _answer(process.stdout)
        if "error" in answer:
            raise ReadError(f"{source}: MuJoCo cannot compile it: {_single_line(answer['error'])}")
        if "warnings" not in answer or not Path(file).is_file():
            ended = f"it ended with {process.returncode}. {_single_line(process.stderr.decode(errors='replace'))}"
            timed_out = -process.returncode in [getattr(signal, name, None) for name in ("SIGXCPU", "SIGKILL")]
            why = f"it was stopped after {CPU_SECONDS} s of work" if timed_out else ended
            raise ReadError(f"{source}: MuJoCo's compiler failed: {why}. Correct the model.")
        return mujoco.MjModel.from_binary_path(file), [_single_line(x) for x in answer["warnings"]]


def _answer(printed: bytes) -> dict[str, Any]:
    """Return the last line that the process printed; MuJoCo may print something of its own before."""
    try:
        answer = json.loads(printed.splitlines()[-1])
    except (IndexError, ValueError):
        return {}
    return answer if isinstance(answer, dict) else {}


def _single_line(text: str) -> str:
    return " ".join(text.split())[:600]
