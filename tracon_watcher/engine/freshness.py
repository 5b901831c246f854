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

"""Whether models are still right: what they predict beside what VMs are seen to suffer.

At an alarm the trust in a host type's models falls, by which schedulers and Watcher make less of
them, until better ones are there, or errors are usual again.
"""

from __future__ import annotations

import collections
import dataclasses
import logging
import threading
from typing import Mapping

from tracon_watcher.contention import demands
from tracon_watcher.engine import sightings as seen
from tracon_watcher.engine import view as views
from tracon_watcher.engine import watching as watching_module
from tracon_watcher.models import labels as labels_module
from tracon_watcher.placement import assessment

LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Due:
    """A host type whose model is to be learnt anew.

    :param count: sightings since the drift began
    """

    host_type: str
    models: assessment.Models
    labels: labels_module.Labels
    count: int


class Freshness:
    """Watches the models of all host types. Safe for use by several threads.

    :param interval: seconds between two samples of a VM
    """

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._lock = threading.Lock()
        self._sightings = seen.Sightings(interval)
        self._types: dict[str, watching_module.Watching] = {}
        #: By host type and since the start: alarms, and new models that were taken into use.
        self.alarms: collections.Counter[str] = collections.Counter()
        self.refits: collections.Counter[str] = collections.Counter()

    def forget(self) -> None:
        """Forget everything but those numbers: another engine may lead from now on."""
        with self._lock:
            self._sightings = seen.Sightings(self._interval)
            self._types = {}

    def trust(self, models: Mapping[str, assessment.Models]) -> dict[str, float]:
        """Return how far these models are trusted, by host type; fully where nothing is said."""
        with self._lock:
            return {name: watching.trust for name, watching in self._types.items()
                    if watching.trust < 1 and watching.models is models.get(name)}

    def take(self, view: views.View, profiles: demands.Profiles) -> int:
        """Learn of a cycle, and return how many sightings it brought."""
        with self._lock:
            known, crowded = view.assessor.models, self._sightings.crowded(view)
            self._types = {name: one for name, one in self._types.items() if name in known}
            for name, models in known.items():
                watching = self._types.get(name)
                self._types[name] = (watching_module.Watching(models) if watching is None
                                     else watching.with_models(models))
                self._types[name].attend(
                    crowded.get(name, ()), view.moment.cluster.resident_index)
            found = self._sightings.take(view, profiles)
            for name, listed in found.items():
                for one in listed:
                    if self._types[name].take(one):
                        self.alarms[name] += 1
                        LOG.warning(
                            'The model of host type %s has drifted: slowdowns that are measured '
                            'and predicted have parted ways on %s; it is trusted %.0f %%', name,
                            ', '.join(self._types[name].concerned()),
                            100 * self._types[name].trust)
            return sum(map(len, found.values()))

    def due(self) -> list[Due]:
        """Return what is to be learnt anew now."""
        with self._lock:
            return [Due(name, one.models, made, one.count) for name, one in self._types.items()
                    if one.due and (made := one.labels()) is not None]

    def announce(self, due: Due, models: assessment.Models | None) -> None:
        """Take note of new models before a cycle can come with them; None: they do not come."""
        with self._lock:
            watching = self._types.get(due.host_type)
            if watching is not None and watching.models is due.models:
                watching.announce(models)

    def tried(self, due: Due, adopted: assessment.Models | None) -> None:
        """Take note that it was tried.

        :param adopted: the new models, which come with a cycle or have come; None where the old
            ones stay
        """
        with self._lock:
            self.refits[due.host_type] += adopted is not None
            watching = self._types.get(due.host_type)
            if watching is not None and any(
                    watching.models is one for one in (due.models, adopted)):
                watching.tried(due.count, adopted)
