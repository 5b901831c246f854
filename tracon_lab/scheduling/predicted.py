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

"""What models say of every configuration."""

from __future__ import annotations

from typing import Mapping, Protocol, Sequence

import numpy as np

from tracon_lab.scheduling import configurations as configuration
from tracon_lab.scheduling import performance
from tracon_watcher.characteristics import FloatArray, request_rate
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster

#: No ratio of IOPS is believed to be smaller, so that no runtime or value is infinite.
_LEAST = 1e-3


class ApplicationModel(Protocol):
    """TRACON's own kind: one application's response to a background."""

    def predict(self, target: FloatArray, background: FloatArray) -> FloatArray: ...


def by_assessor(configurations: configuration.Configurations, cores: Sequence[int],
                profiles: FloatArray, storage_waits: FloatArray,
                solo_seconds: FloatArray) -> performance.Performance:
    """Ask the one judgement of the product, with a host for each configuration.

    :param cores: t numbers, of a host of each type
    :param profiles: (t, c, 4) characteristics of each class alone on each host type
    :param storage_waits: (t, c) part of its time alone that it waits for storage, NaN where
        unknown
    :param solo_seconds: (t, c)
    """
    hosts = [cluster.Host(
        str(place), tuple(cluster.Resident(f'{place}-{row}', profiles[kind, task],
                                           storage_wait=float(storage_waits[kind, task]))
                          for row, task in enumerate(members)), cores=cores[kind])
        for place, (kind, members) in enumerate(zip(configurations.host_type.tolist(),
                                                    configurations.members))]
    state = cluster.build(hosts)
    task = np.array([one for members in configurations.members for one in members],
                    dtype=np.intp)
    slow, ratio = assessment.Assessor(state).log_responses()
    found = []
    for log_response in (slow, -ratio):
        table = np.full(configurations.residents.shape, np.nan)
        table[state.host, task] = np.exp(log_response)
        found.append(table)
    return performance.Performance(configurations, solo_seconds,
                                   _iops_alone(profiles), found[0], found[1])


def by_application(configurations: configuration.Configurations, profiles: FloatArray,
                   solo_seconds: FloatArray,
                   models: Mapping[tuple[int, int, str], ApplicationModel],
                   ) -> performance.Performance:
    """Ask TRACON's own models, one an application: its background is the sum of the others.

    A neighbour never makes a task faster, as measurements have it now and then.

    :param profiles: (t, c, 4)
    :param models: by host type, class and response; a response without one is undefined
    """
    kinds = configurations.host_type
    residents = configurations.residents.astype(np.float64)
    total = np.einsum('nc,ncf->nf', residents, profiles[kinds])
    found = {name: np.full(residents.shape, np.nan) for name in ('slowdown', 'iops_ratio')}
    for (kind, task, response), model in models.items():
        rows = np.flatnonzero((kinds == kind) & (residents[:, task] > 0))
        own = profiles[kind, task]
        target = np.tile(own, (len(rows), 1))
        background = np.maximum(total[rows] - own, 0.0)
        value = model.predict(target, background)
        value = np.maximum(value, 1.0) if response == 'slowdown' else np.clip(value, _LEAST, 1.0)
        alone = residents[rows].sum(axis=1) == 1
        found[response][rows, task] = np.where(alone, 1.0, value)
    return performance.Performance(configurations, solo_seconds, _iops_alone(profiles),
                                   found['slowdown'], found['iops_ratio'])


def _iops_alone(profiles: FloatArray) -> FloatArray:
    return np.stack([request_rate(one) for one in profiles])
