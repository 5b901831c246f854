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

"""What is not as it should be, told in the log once and not with every cycle."""

from __future__ import annotations

from typing import Any

_MOST = 200


class Reports:
    """Collects texts during a cycle, and logs those that the cycle before did not have.

    :param log: logger
    """

    def __init__(self, log: Any) -> None:
        #: Error of each failing activity, by activity. The caller of the activity logs it.
        self.failures: dict[str, str] = {}
        self._log = log
        self._told: set[tuple[str, str]] = set()
        self._now: set[tuple[str, str]] = set()

    def __call__(self, kind: str, text: str) -> None:
        """Take a text.

        :param kind: what it is about; beyond the first of a kind, many are only counted
        """
        self._now.add((kind, text))

    def __len__(self) -> int:
        """How many there were in the last whole cycle, with what fails now."""
        return len(self._told) + len(self.failures)

    def end(self) -> None:
        """Log what is new, and forget what is over."""
        new = sorted(self._now - self._told)
        for _kind, text in new[:_MOST]:
            self._log.warning('%s', text)
        if len(new) > _MOST:
            self._log.warning('There are %d more such things', len(new) - _MOST)
        self._told, self._now = self._now, set()
