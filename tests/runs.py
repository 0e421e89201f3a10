"""Records for tests, made by a Runge-Kutta loop in Python that shares no code with the simulator."""

from __future__ import annotations

from typing import Any

import numpy as np

from bellcrank.model import Mechanism
from bellcrank.record import Record, Stop, state_columns


def rk4(m: Mechanism, q: Any, v: Any, seconds: float, h: float, every: int = 1, **more: Any) -> Record:
    """Return a free motion; q and v may have any batch shape."""
    q, v = np.asarray(q, float), np.asarray(v, float)

    def a(q: Any, v: Any) -> Any:
        return m.forward_dynamics(q, v, np.zeros_like(v))

    t, qs, vs = [0.0], [q], [v]
    for i in range(1, round(seconds / h) + 1):
        v1, a1 = v, a(q, v)
        v2, a2 = v + h / 2 * a1, a(m.integrate(q, h / 2 * v1), v + h / 2 * a1)
        v3, a3 = v + h / 2 * a2, a(m.integrate(q, h / 2 * v2), v + h / 2 * a2)
        v4, a4 = v + h * a3, a(m.integrate(q, h * v3), v + h * a3)
        q, v = m.integrate(q, h / 6 * (v1 + 2 * v2 + 2 * v3 + v4)), v + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
        if i % every == 0:
            t.append(i * h)
            qs.append(q)
            vs.append(v)
    columns = state_columns(m, t, q=np.stack(qs, axis=-2), v=np.stack(vs, axis=-2))
    provenance = {"mechanism": m.name, "fingerprint": m.fingerprint, "integrator": "rk4", "step": h}
    runs = int(np.prod(q.shape[:-1], dtype=int))
    options = {"provenance": provenance, "stops": [Stop("end", seconds, "the time asked for")] * runs}
    return Record(columns, mechanism=m, **(options | more))


def same(a: Record, b: Record) -> None:
    """Check equality to the last bit in everything that a file can hold."""
    assert a.columns == b.columns
    assert a.batch == b.batch
    for name in a.columns:
        assert a.column(name).unit == b.column(name).unit
        np.testing.assert_array_equal(a[name].view(np.int64) if not np.isnan(a[name]).any() else a[name],
                                      b[name].view(np.int64) if not np.isnan(a[name]).any() else b[name])  # fmt: skip
    assert dict(a.provenance) == dict(b.provenance)
    assert repr(a.stops) == repr(b.stops)  # a time may be NaN
    assert a.states == b.states
    assert (a.mechanism is None) == (b.mechanism is None)
    if a.mechanism is not None and b.mechanism is not None:
        assert a.mechanism.fingerprint == b.mechanism.fingerprint
        assert a.mechanism.name == b.mechanism.name
        assert a.mechanism.report == b.mechanism.report
