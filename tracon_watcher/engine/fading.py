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

"""How far a model is trusted: less at each alarm, and again when its errors have been usual."""

from __future__ import annotations

#: What trust is multiplied by at an alarm, and divided by when errors were usual for a while.
FADE = 0.4
#: It does not fall further, so that it can rise again.
LEAST = FADE ** 3
#: Errors that must be usual in the mean for trust to rise, at least; they are of a whole round of
#: VMs, since where part of a type has changed, the others' errors are usual at any time.
RECOVERY = 40
#: Rounds that it takes at most. They are doubled each time trust has risen, and one again when it
#: has stayed for so many times as long: where errors are hardly usual, it would come and go.
MOST_PATIENCE, CALM = 64, 12


class Trust:
    """How far one host type's models are trusted, as ``value``, 0 to 1."""

    def __init__(self) -> None:
        self.value = 1.0
        self._patience, self._calm = 1, 0
        self._count, self._mean = 0, 0.0

    def restore(self) -> None:
        """Trust fully: the models are others."""
        self.value = 1.0
        self._count, self._mean = 0, 0.0

    def fade(self) -> bool:
        """Trust less; say whether it was trusted fully until now."""
        full = self.value == 1
        self.value = max(self.value * FADE, LEAST)
        self._count, self._mean = 0, 0.0
        return full

    def hear(self, unusual: float, vms: int, tolerance: float) -> bool:
        """Take note of an error; say whether trust has become full by it.

        :param unusual: by how much the error was larger than is usual, in standard deviations
        :param vms: of how many VMs errors are heard: a round
        :param tolerance: what is still usual, in the mean
        """
        whole = self._patience * max(RECOVERY, vms)
        if self.value == 1:
            self._calm += 1
            if self._calm >= CALM * whole:
                self._patience = 1
            return False
        self._count += 1
        self._mean += (unusual - self._mean) / self._count
        if self._count < whole:
            return False
        risen = self._mean <= tolerance
        self._count, self._mean = 0, 0.0
        if not risen:
            return False
        self.value = self.value / FADE
        if self.value <= 1 - 1e-9:
            return False
        self.value, self._calm = 1.0, 0
        self._patience = min(2 * self._patience, MOST_PATIENCE)
        return True
