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

"""Hears Nova's versioned notifications through oslo.messaging."""

from __future__ import annotations

import time
from typing import Any, Callable, Mapping

import oslo_messaging

from tracon_watcher.engine import residency as residency_module

_MOST_REPORTED = 100


class Endpoint:
    """Hands what Nova tells to the residency.

    :param report: called with a notification's type and error when it cannot be read, once for
        each type of both
    """

    filter_rule = oslo_messaging.NotificationFilter(
        event_type=r'^(instance|aggregate|service)\.')

    def __init__(self, residency: residency_module.Residency,
                 report: Callable[[str, Exception], None],
                 clock: Callable[[], float] = time.time) -> None:
        self._residency = residency
        self._report = report
        self._reported: set[tuple[str, str]] = set()
        self._clock = clock

    def info(self, context: Any, publisher: str, event: str, payload: Mapping[str, Any],
             metadata: Any) -> None:
        """Take a notification of priority INFO; Nova has no other that matters here."""
        try:
            self._residency.tell(event, residency_module.unwrapped(payload), self._clock())
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            # Raised, it would come again and again.
            kind = (event, type(error).__name__)
            if kind not in self._reported and len(self._reported) < _MOST_REPORTED:
                self._reported.add(kind)
                self._report(event, error)
            self._residency.repair_wanted.set()
