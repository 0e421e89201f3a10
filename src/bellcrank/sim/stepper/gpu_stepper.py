"""Stepper whose runs stay on the GPU: each action is the loop of a run (emit/cuda/run_kernel.py) between two kernels.

Inputs are read from the caller's GPU memory, and no call waits for the GPU. Therefore an input that is not finite is
not refused but ends its run, and a step is not refused when all runs have ended.
"""

from __future__ import annotations

from typing import Any

from bellcrank.buffers import empty_buffer, poisoned
from bellcrank.build.compilation import Where
from bellcrank.build.function_compilation import compile_graph
from bellcrank.emit.cuda.device import cupy, on_gpu, to_cupy
from bellcrank.errors import InputError
from bellcrank.sim.run.gpu_runs import GpuProgram
from bellcrank.sim.stepper.stepper import Stepper, StepperSnapshot
from bellcrank.sim.stepper.stepper_actions import check_numbers, takes_inputs

Array = Any  # a CuPy array


class GpuStepper(Stepper):
    """Runs of one system on the GPU; see Stepper. Its arrays are CuPy arrays."""

    def __init__(self, dtype: str, *given: Any) -> None:
        self.dtype, self.xp = dtype, cupy()
        super().__init__(*given)

    def _load_module(self) -> None:
        action, cp, n = self._action, self.xp, self.runs
        where = Where("cuda", self.dtype)
        self._kernels = {name: compile_graph(graph, where) for name, graph in action.graphs.items()}
        self._loop = GpuProgram(action.program, self.dtype)
        self._run_data = poisoned(cp.zeros((1, action.layout.size + action.free, n), self.dtype))
        self._reward, self._ended = (cp.zeros(self._shape, self.dtype) for _ in range(2))
        self._final = cp.zeros((*self._shape, action.row), self.dtype) if self.task.restarts else None
        # Rows, and how many.
        self._none = empty_buffer((0, action.program.row, n), self.dtype, cp), cp.zeros(n, cp.int64)
        self._run_words = {"busy": 0, "alive": 1}
        self._states: Array = None

    def _set(self, word: str, x: int) -> None:
        self._run_words[word] = x

    def _get(self, word: str) -> int:
        return self._run_words[word]

    def _to_host(self, x: Any) -> Any:
        return self.xp.asnumpy(x) if on_gpu(x) else x

    def _call(self, name: str, **more: Array) -> Any:
        """Call one graph of the action for all runs: (runs, elements) in and out."""
        kernel, size = self._kernels[name], self._action.layout.size
        given = {"c": self._run_data[0, :size].T, "p": self._run_data[0, size:].T, **more}
        return kernel(*(given[key] for key in kernel.signature.inputs))

    def step(self, u: Any = None, *, out: Any = None) -> Array:
        """Advance all runs by one action and return the observations after it.

        Parameters
        ----------
        u : array, shape (*batch, nu), optional
            Inputs, which hold for `every` seconds.
        out : array, shape (*batch, row), optional
            GPU array that receives the result.

        Returns
        -------
        array, shape (*batch, row)
            Observations, a CuPy array, or `out`.
        """
        inputs, action = self._inputs(u), self._action
        out = None if out is None else self._output(out)
        with self._exclusive_use("step"):
            s = self._open_states(inputs)
            self._run(s, inputs)
            closed = self._call("close", s=s.T, u=inputs)
            self._run_data[0, : action.changing] = closed["c"].T
            s[action.program.live] *= closed["end"][:, 0] <= 0.0
            self.reward.reshape(-1)[:], self.ended.reshape(-1)[:] = closed["reward"][:, 0], closed["end"][:, 0]
            row = self._restarted_rows(closed["row"]) if self.task.restarts else closed["row"]
        y = row.reshape(*self._shape, action.row)
        if out is None:
            return y
        out[...] = y
        return out

    def _open_states(self, u: Array) -> Array:
        """Return the states of all runs before an action: unchanged since the last action, if no call modified them."""
        if self._states is None or self.task.restarts:
            self._states = self.xp.ascontiguousarray(self._call("open", u=u).T)
        elif self._action.program.renew and self._action.nu:
            self._states[self._action.program.fresh] = 1.0
        return self._states

    def restore(self, snapshot: StepperSnapshot) -> None:
        """Restore the state of all runs.

        Parameters
        ----------
        snapshot : Snapshot
            A snapshot of this stepper.
        """
        super().restore(snapshot)
        self._states = None

    def _run(self, s: Array, u: Array) -> None:
        """Run the ticks of an action."""
        nu, action = self._action.nu, self._action
        p = self.xp.ascontiguousarray(self._run_data[0, action.layout.size :])
        rows, counts = self._none
        self._loop.launch(action.ticks, s, p, u, (nu, 1), rows, 0, counts)

    def _restarted_rows(self, row: Array) -> Array:
        """Start the runs again that have ended, and return the rows with their new starts."""
        size, new = self._action.layout.size, self._run_data[0, self._action.layout.place("new")] > 0.0
        assert self._final is not None
        self._final.reshape(self.runs, -1)[...] = row
        self._run_data[0, :size] = self._call("begin").T
        return self.xp.where(new[:, None], self._call("look"), row)

    def _observe(self, place: Array) -> None:
        self._states = None
        self._run_data[0, : self._action.layout.size] = self._call("begin").T
        place.reshape(self.runs, -1)[...] = self._call("look")

    def _inputs(self, u: Any) -> Array:
        expected = (*self._shape, self._action.nu)
        if not takes_inputs(u, expected, self.inputs):
            return empty_buffer((self.runs, 0), self.dtype, self.xp)
        array = to_cupy(u, "step: u")
        check_numbers(array, expected, self.inputs)
        return self.xp.ascontiguousarray(array.astype(self.dtype, copy=False)).reshape(self.runs, -1)

    def _output(self, out: Any) -> Array:
        array, expected = to_cupy(out, "out") if on_gpu(out) else out, (*self._shape, self._action.row)
        if not on_gpu(array) or array.shape != expected or array.dtype != self.dtype:
            got = f"{array.dtype} {array.shape}" if hasattr(array, "shape") else type(out).__name__
            raise InputError(f"out must be a {self.dtype} array of shape {expected} on the GPU; got {got}.")
        return array
