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

"""Learns models anew that have drifted, beside the cycles and never in their way.

A new model takes the old one's place when VMs that were kept out of its fit are predicted so much
better that it is no chance. Otherwise it is tried again when there are more measurements.
"""

from __future__ import annotations

import logging
import time
from typing import Callable

from tracon_watcher.engine import active_models
from tracon_watcher.engine import freshness
from tracon_watcher.engine.storage import errors as storage_errors
from tracon_watcher.engine.storage import lease
from tracon_watcher import errors
from tracon_watcher.models import refit
from tracon_watcher.placement import assessment

LOG = logging.getLogger(__name__)


class Refitting:
    """Does what :class:`.freshness.Freshness` says is due.

    :param term: returns the engine's term; raises when it does not lead
    :param clock: seconds since the epoch
    """

    def __init__(self, watched: freshness.Freshness, models: active_models.ActiveModels,
                 term: Callable[[], lease.Term], clock: Callable[[], float] = time.time) -> None:
        self._watched = watched
        self._models = models
        self._term = term
        self._clock = clock

    def work(self) -> None:
        """Refit all that is due.

        What fails for a host type's model alone is logged, and tried again with more labels.

        :raises tracon_watcher.engine.storage.errors.StorageFailed: when a new model could not be
            stored; it is learnt anew the next time
        :raises tracon_watcher.engine.storage.errors.NoLongerLeader: likewise
        """
        for due in self._watched.due():
            made = None
            try:
                made = self._refit(due)
            except (storage_errors.StorageFailed, storage_errors.NoLongerLeader):
                # It would be the same for all others.
                raise
            except errors.TraconError as error:
                LOG.error('Host type %s: no model was learnt from %d measured slowdowns: %s; the '
                          'present one stays, and it is tried again with more', due.host_type,
                          len(due.labels), error)
            self._watched.tried(due, made)

    def _refit(self, due: freshness.Due) -> assessment.Models | None:
        term = self._term()
        found = refit.refit(due.models.slowdown, due.labels)
        wrong = ', '.join(f'{name} {value:.3f}' for name, value in found.errors.items())
        if not found.convincing:
            LOG.info('Host type %s: no other model suits %d measured slowdowns far better than '
                     'the present one (errors of exponents: %s); it is tried again with more',
                     due.host_type, len(due.labels), wrong)
            return None
        now = self._clock()
        made = assessment.Models(*refit.models(
            found, due.models.slowdown, due.models.iops_ratio, due.labels, {
                'how': found.how, 'at': now, 'labels': len(due.labels),
                'vms': len(set(due.labels.vm.tolist())), 'errors': dict(found.errors),
                'parent': due.models.slowdown.to_document()['checksum'],
                active_models.ROOT: self._models.root(due.host_type, due.models)}))
        # A cycle may come with it at once.
        self._watched.announce(due, made)
        try:
            version = self._models.put(term, made, now)
        except Exception:
            self._watched.announce(due, None)
            raise
        LOG.warning('Host type %s: the model was refitted (%s, version %d) to %d slowdowns of %d '
                    'VMs; errors of exponents: %s', due.host_type, found.how, version,
                    len(due.labels), made.slowdown.training['refit']['vms'], wrong)
        return made
