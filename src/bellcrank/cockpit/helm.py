"""Who drives: at most one of all who look. And the dead-man: a driver who is not heard of lets go of the levers.

No clock in here: every call says what time it is, so tests need not wait.
"""

from __future__ import annotations

from dataclasses import dataclass, field

DEAD_MAN = 0.2  # s without a message, after which the levers are let go
SILENT = 5.0  # s without a message, after which anybody who asks drives
PATIENCE = 10.0  # s without an answer, which is a yes


@dataclass
class Helm:
    driver: int | None = None
    asking: int | None = None
    heard: float = -1e9  # when the driver's hand was last heard of
    _asked: float = 0.0
    _silent: float = 0.0  # since when the driver says nothing at all
    refused: set[int] = field(default_factory=set)  # told once, then forgotten

    def held(self, now: float) -> bool:
        """Whether a hand is on the levers."""
        return self.driver is not None and now - self.heard <= DEAD_MAN

    def hand(self, who: int, now: float) -> bool:
        """The driver moved or held a lever; False of anybody else."""
        if who != self.driver:
            return False
        self.heard = self._silent = now
        return True

    def let_go(self, who: int) -> None:
        """The driver looks elsewhere."""
        if who == self.driver:
            self.heard = -1e9

    def ask(self, who: int, now: float) -> None:
        if who == self.driver:
            return
        if self.driver is None or now - self._silent > SILENT:
            self._give(who, now)
        elif self.asking is None:
            self.asking, self._asked = who, now
        elif self.asking != who:
            self.refused.add(who)  # one at a time

    def answer(self, who: int, grant: bool, now: float) -> None:
        if who != self.driver or self.asking is None:
            return
        if grant:
            self._give(self.asking, now)
        else:
            self.refused.add(self.asking)
            self.asking = None

    def leave(self, who: int, now: float) -> None:
        """Gives up driving, or asking; who asks takes over."""
        if who == self.asking:
            self.asking = None
        if who == self.driver:
            self.driver = None
            if self.asking is not None:
                self._give(self.asking, now)

    def tick(self, now: float) -> None:
        """No answer is a yes."""
        if self.asking is not None and (now - self._asked > PATIENCE or now - self._silent > SILENT):
            self._give(self.asking, now)

    def _give(self, who: int, now: float) -> None:
        self.driver, self.asking, self.heard, self._silent = who, None, -1e9, now
