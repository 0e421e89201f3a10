"""Helm: assignment of the driver among all viewers, and the dead-man switch that releases the levers.

The time is an argument of every call, so that tests need not wait.
"""

from __future__ import annotations

from dataclasses import dataclass, field

DEAD_MAN_SECONDS = 0.2  # s without a message, after which the levers are released
SILENT_SECONDS = 5.0  # s without a message, after which any viewer may take over
ANSWER_SECONDS = 10.0  # s without an answer, after which a request is granted


@dataclass
class Helm:
    """Driver, and the viewer who requests to drive."""

    driver: int | None = None
    asking: int | None = None
    last_input: float = -1e9  # time of the driver's last input
    _request_time: float = 0.0
    _active_time: float = 0.0  # time since which the driver has sent no input
    refused: set[int] = field(default_factory=set)  # viewers to notify of a refusal

    def held(self, now: float) -> bool:
        """Return whether the driver holds the levers at time `now`."""
        return self.driver is not None and now - self.last_input <= DEAD_MAN_SECONDS

    def hold(self, viewer_id: int, now: float) -> bool:
        """Record that viewer `viewer_id` holds the levers at time `now`; return False if it is not the driver."""
        if viewer_id != self.driver:
            return False
        self.last_input = self._active_time = now
        return True

    def release(self, viewer_id: int) -> None:
        """Release the levers if `viewer_id` is the driver."""
        if viewer_id == self.driver:
            self.last_input = -1e9

    def ask(self, viewer_id: int, now: float) -> None:
        """Request to drive for viewer `viewer_id` at time `now`; granted at once without an active driver."""
        if viewer_id == self.driver:
            return
        if self.driver is None or now - self._active_time > SILENT_SECONDS:
            self._set_driver(viewer_id, now)
        elif self.asking is None:
            self.asking, self._request_time = viewer_id, now
        elif self.asking != viewer_id:
            self.refused.add(viewer_id)  # one request at a time

    def answer(self, viewer_id: int, grant: bool, now: float) -> None:
        """Accept or refuse the request, by `grant`, at time `now`, if `viewer_id` is the driver."""
        if viewer_id != self.driver or self.asking is None:
            return
        if grant:
            self._set_driver(self.asking, now)
        else:
            self.refused.add(self.asking)
            self.asking = None

    def leave(self, viewer_id: int, now: float) -> None:
        """End driving, or the request, of viewer `viewer_id` at time `now`; a waiting viewer takes over."""
        if viewer_id == self.asking:
            self.asking = None
        if viewer_id == self.driver:
            self.driver = None
            if self.asking is not None:
                self._set_driver(self.asking, now)

    def tick(self, now: float) -> None:
        """Grant a request that has no answer at time `now`."""
        if self.asking is not None and (
            now - self._request_time > ANSWER_SECONDS or now - self._active_time > SILENT_SECONDS
        ):
            self._set_driver(self.asking, now)

    def _set_driver(self, viewer_id: int, now: float) -> None:
        self.driver, self.asking, self.last_input, self._active_time = viewer_id, None, -1e9, now
