"""Helm: assignment of the driver among all viewers, and the dead-man switch that releases the levers.

The time is an argument of every call, so that tests need not wait.
"""

from __future__ import annotations

from dataclasses import dataclass, field

DEAD_MAN = 0.2  # s without a message, after which the levers are released
SILENT = 5.0  # s without a message, after which any viewer may take over
PATIENCE = 10.0  # s without an answer, after which a request is granted


@dataclass
class Helm:
    """Driver, and the viewer who requests to drive."""

    driver: int | None = None
    asking: int | None = None
    heard: float = -1e9  # time of the driver's last input
    _asked: float = 0.0
    _silent: float = 0.0  # time since which the driver has sent no input
    refused: set[int] = field(default_factory=set)  # viewers to notify of a refusal

    def held(self, now: float) -> bool:
        """Return whether the driver holds the levers at time `now`."""
        return self.driver is not None and now - self.heard <= DEAD_MAN

    def hand(self, who: int, now: float) -> bool:
        """Record that viewer `who` holds the levers at time `now`; return False if it is not the driver."""
        if who != self.driver:
            return False
        self.heard = self._silent = now
        return True

    def let_go(self, who: int) -> None:
        """Release the levers if `who` is the driver."""
        if who == self.driver:
            self.heard = -1e9

    def ask(self, who: int, now: float) -> None:
        """Request to drive for viewer `who` at time `now`; granted at once without an active driver."""
        if who == self.driver:
            return
        if self.driver is None or now - self._silent > SILENT:
            self._give(who, now)
        elif self.asking is None:
            self.asking, self._asked = who, now
        elif self.asking != who:
            self.refused.add(who)  # one request at a time

    def answer(self, who: int, grant: bool, now: float) -> None:
        """Accept or refuse the request, by `grant`, at time `now`, if `who` is the driver."""
        if who != self.driver or self.asking is None:
            return
        if grant:
            self._give(self.asking, now)
        else:
            self.refused.add(self.asking)
            self.asking = None

    def leave(self, who: int, now: float) -> None:
        """End driving, or the request, of viewer `who` at time `now`; a waiting viewer takes over."""
        if who == self.asking:
            self.asking = None
        if who == self.driver:
            self.driver = None
            if self.asking is not None:
                self._give(self.asking, now)

    def tick(self, now: float) -> None:
        """Grant a request that has no answer at time `now`."""
        if self.asking is not None and (now - self._asked > PATIENCE or now - self._silent > SILENT):
            self._give(self.asking, now)

    def _give(self, who: int, now: float) -> None:
        self.driver, self.asking, self.heard, self._silent = who, None, -1e9, now
