"""Summary lines at the end of a run: what was not tested, and what to install for it; one line for each reason."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

# A word of the reason, and what to do about it. The first match is printed.
REMEDIES = {
    "Chromium": "a Chromium or Chrome on the PATH; on Debian: apt install chromium",
    "make page": "make page (it needs a network once)",
    "ptxas": "pip install nvidia-cuda-nvcc",
    "torch": "a GPU, and pip install torch",
    "jax": "a GPU, and pip install 'jax[cuda13]'",
    "JAX": "a GPU, and pip install 'jax[cuda13]'",
    "CuPy": "a computer with an NVIDIA GPU, and pip install -e '.[cuda]'",
    "NVIDIA GPU": "a computer with an NVIDIA GPU, and pip install -e '.[cuda]'",
    "there is a GPU": "a computer without a GPU",
    "ziglang": "pip install -e '.[fmu]'",
    "is not installed": "make test installs it; by hand: pip install -e '.[dev]'",
    "could not import": "make test installs it; by hand: pip install -e '.[dev]'",
    "thread sanitizer": "on Debian: apt install gcc, which brings libtsan",
    "C++ compiler": "on Debian: apt install g++",
    "C compiler": "on Debian: apt install gcc",
    "gcc": "on Debian: apt install gcc",
    "nm to list": "on Debian: apt install binutils",
    "LaTeX": "on Debian: apt install texlive-latex-extra",
    "root": "run the tests as another user",
    "only writes": "BELLCRANK_UPDATE=1, which writes instead of testing",
}


def summary(reasons: Iterable[str]) -> list[str]:
    """Return one line for each reason, the most frequent first."""
    counts = Counter(re.split(r" \(|\.? *$|[.,;\n]\s", reason.removeprefix("Skipped: "))[0] for reason in reasons)
    return [
        f"{count:4} {'test' if count == 1 else 'tests'}: {reason} [{remedy(reason)}]"
        for reason, count in sorted(counts.items(), key=lambda row: (-row[1], row[0]))
    ]


def remedy(reason: str) -> str:
    return next((text for word, text in REMEDIES.items() if word in reason), "another system or processor")
