# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""Which measured windows are kept: none taken under foreign load, steal or drift."""

import collections
import dataclasses


@dataclasses.dataclass(frozen=True)
class Limits:
    """What a window may have suffered; shares of one core.

    :param foreign: foreign CPU on the measured core; what the kernel does for the guests'
        own I/O counts as such and reaches 2.5 %
    :param foreign_other: foreign CPU on the other cores together; guests are pinned away
        from it, and what it does to the measured core the canary tells
    :param steal: time the machine itself was not run, any core
    :param canary: relative distance of the canary during the window from its usual value
    :param bracket: the same of the few pulses just before and just after the window
    :param attempts: after which a point is given up for now
    """

    foreign: float = 0.05
    foreign_other: float = 1.05
    steal: float = 0.01
    canary: float = 0.07
    bracket: float = 0.2
    attempts: int = 4


class Canaries:
    """The usual value of the canary: that of an undisturbed core.

    Disturbances only make it slower, hence a low quantile; a limited memory follows a machine
    that has changed for good.

    :param memory: of how many windows
    """

    def __init__(self, memory: int = 60, quantile: float = 0.2) -> None:
        self._recent: collections.deque[float] = collections.deque(maxlen=memory)
        self._quantile = quantile

    def add(self, seconds: float) -> None:
        if seconds > 0:
            self._recent.append(seconds)

    def deviation(self, seconds: float) -> float:
        """Relative to the usual value; 0 while there are too few to tell."""
        if len(self._recent) < 5 or seconds <= 0:
            return 0.0
        ordered = sorted(self._recent)
        return seconds / ordered[int(self._quantile * (len(ordered) - 1))] - 1


def objections(limits: Limits, foreign: float, foreign_other: float, steal: float,
               during: float, brackets: tuple[float, ...]) -> list[str]:
    """Why a window is not to be kept; empty when it is.

    :param during: deviation of the canary while the window was taken
    :param brackets: before and after it
    """
    found = []
    if foreign > limits.foreign:
        found.append('foreign CPU %.1f %% on the measured core' % (100 * foreign))
    if foreign_other > limits.foreign_other:
        found.append('foreign CPU %.1f %% on other cores' % (100 * foreign_other))
    if steal > limits.steal:
        found.append('steal %.1f %%' % (100 * steal))
    if abs(during) > limits.canary:
        found.append('canary off by %+.1f %% during the window' % (100 * during))
    worst = max(brackets, key=abs, default=0.0)
    if abs(worst) > limits.bracket:
        found.append('bracketing canary off by %+.1f %%' % (100 * worst))
    return found
