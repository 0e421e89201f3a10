"""Draw the motion and the estimates of docs/identify.md: `python docs/figures/excitation.py`."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from svg_file import write

import bellcrank as bc


def arm() -> bc.Mechanism:
    """Return the arm of the page."""
    b = bc.Builder("two links")
    for k, (mass, length) in enumerate(((3.0, 0.5), (2.0, 0.4)), 1):
        b.body(f"link{k}", mass=mass, com=(length / 2, 0.02, 0), inertia=(0.01, 0.05, 0.06))
        parent, x = ("ground", 0.0) if k == 1 else ("link1", 0.5)
        b.joint(f"joint{k}", "revolute", parent, f"link{k}", axis=(0, -1, 0), point=(x, 0, 0), damping=0.4, lower=-2,
                upper=2, velocity=3)  # fmt: skip
    return b.build()


def main() -> None:
    """Draw positions of the excitation, and the estimates with their standard deviations."""
    m = arm()
    base = bc.identify.base_parameters(m)
    go = bc.identify.excite(base, seconds=10.0, rate=100.0, harmonics=3)
    tau = m.inverse_dynamics(go.q, go.v, go.a)
    noisy = tau + 0.05 * tau.std(axis=0) * np.random.default_rng(0).normal(size=tau.shape)
    found = bc.identify.estimate(base, go.q, go.v, go.a, noisy)
    figure = Figure(figsize=(9.4, 3.0))
    left, right = figure.subplots(1, 2, gridspec_kw={"width_ratios": [1, 1]})
    for k in range(2):
        left.plot(go.t[::10], go.q[::10, k], label=f"joint{k + 1}.q")
    for limit in (-2, 2):
        left.axhline(limit, color="black", lw=0.8, ls="--")
    left.set_xlabel("t, s")
    left.set_title("excitation, rad; dashed: limits of the joints", fontsize=9)
    left.legend(fontsize=8, loc="upper right")
    rows = np.arange(len(base))[::-1]
    right.errorbar((found.values - base.nominal) / found.errors, rows, xerr=1.96, fmt="o", ms=4, color="C0", capsize=3)
    right.axvline(0.0, color="black", lw=0.8, ls="--")
    right.set_yticks(rows, [base.combination(k) if len(base.combination(k)) < 34 else f"{base.names[k]} + ..."
                            for k in range(len(base))], fontsize=7)  # fmt: skip
    right.set_xlabel("estimate - true value, in standard errors")
    right.set_title("base parameters with 95 % intervals", fontsize=9)
    figure.tight_layout()
    write(figure, "excitation")


if __name__ == "__main__":
    main()
