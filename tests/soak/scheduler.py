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

"""A worker of nova-scheduler's in the soak: Nova's handlers, with our filter and weigher alone.

Its orders are requests for a VM, with what has changed on hosts since the last one, as Nova's
scheduler hears of it from the computes. Its clock is that of the requests' own thread.
"""

from __future__ import annotations

import sys

from nova import monkey_patch

monkey_patch.patch(backend='threading')     # before anything else, as Nova does

import collections                                                      # noqa: E402
import logging                                                          # noqa: E402
import random                                                           # noqa: E402
import time                                                             # noqa: E402
from typing import Any, Mapping                                         # noqa: E402

import nova.conf                                                        # noqa: E402
from nova import objects                                                # noqa: E402
from nova.scheduler import filters                                      # noqa: E402
from nova.scheduler import host_manager                                 # noqa: E402
from nova.scheduler import weights                                      # noqa: E402
import numpy as np                                                      # noqa: E402

from nova_filters import interference_filter                            # noqa: E402
from nova_filters import interference_weigher                           # noqa: E402
from tracon_watcher.conf import nova_filters as conf_module             # noqa: E402


class Scheduler:
    """Chooses hosts.

    :param hosts: how many there are
    :param candidates: how many of them Placement offers for a request, drawn by lot, as with
        ``randomize_allocation_candidates`` and ``max_placement_results``
    """

    def __init__(self, hosts: int, candidates: int) -> None:
        self._random = random.Random(hosts)
        self._candidates = min(candidates, hosts)
        self._names = [f'compute-{number:04}' for number in range(hosts)]
        self._instances: list[dict[str, objects.Instance]] = [{} for _name in self._names]
        self._states = [_state(name, {}) for name in self._names]
        # One for all: it is not looked at.
        self._instance = objects.Instance(uuid='00000000-0000-4000-8000-000000000000')
        self._filter = interference_filter.InterferenceFilter()
        self._weigher = interference_weigher.InterferenceWeigher()
        self._filters = filters.HostFilterHandler()
        self._weights = weights.HostWeightHandler()

    def answer(self, order: Mapping[str, Any]) -> Mapping[str, Any]:
        """Place a VM, or say whether a snapshot is there."""
        for host, name, step in order['changes']:
            if step > 0:
                self._instances[host][name] = self._instance
            else:
                self._instances[host].pop(name, None)
            self._renew(host)
        if 'uuid' not in order:
            self._filter.filter_all(list(self._states), _spec(order['example']))
            return {'snapshot': self._snapshot_age() is not None}
        offered = self._random.sample(range(len(self._states)), self._candidates)
        states, spec = [self._states[number] for number in offered], _spec(order)
        wall, own = time.perf_counter(), time.thread_time()
        passed = self._filters.get_filtered_objects([self._filter], states, spec)
        weighed = self._weights.get_weighed_objects([self._weigher], passed, spec)
        own, wall = time.thread_time() - own, time.perf_counter() - wall
        chosen = weighed[0].obj
        # What Nova does to the one it has chosen.
        chosen.num_instances += 1
        chosen.updated = time.time()
        host = self._names.index(chosen.host)
        self._renew(host)
        left = {state.host for state in passed}
        return {'host': host, 'wall': wall, 'own': own, 'reference': _reference(),
                'age': self._snapshot_age(),
                'offered': offered,
                'refused': [number for number in offered if self._names[number] not in left]}

    def _snapshot_age(self) -> float | None:
        prepared = self._filter._worker.judge().snapshots.current
        return None if prepared is None else time.time() - prepared.content.cluster.generated_at

    def _renew(self, host: int) -> None:
        """Make a new HostState.

        Nova makes all of them again for each request; those without a change need not be, and half
        of this process's time would go there.
        """
        self._states[host] = _state(self._names[host], self._instances[host])


def _reference() -> float:
    """Return the seconds of CPU that fixed work takes, of the sort that a judgement is made of."""
    began = time.thread_time()
    values = np.linspace(0.0, 1.0, 250 * 14).reshape(250, 14)
    for _again in range(20):
        np.sort(np.expm1(values @ values.T).sum(axis=1))
    collections.Counter(f'{number:04}'[-1] for number in range(500))
    return time.thread_time() - began


def _state(name: str, instances: dict[str, objects.Instance]) -> host_manager.HostState:
    state = host_manager.HostState(name, name, None)
    state.instances = instances
    state.num_instances = len(instances)
    state.aggregates = []
    state.updated = 1.0
    return state


def _spec(order: Mapping[str, Any]) -> objects.RequestSpec:
    return objects.RequestSpec(
        instance_uuid=order['uuid'], project_id=order['project'], num_instances=1,
        flavor=objects.Flavor(name=order['flavor'], vcpus=order['vcpus'], memory_mb=2048,
                              root_gb=10, ephemeral_gb=0, swap=0,
                              extra_specs=order['extra_specs']),
        image=objects.ImageMeta(id=order['image']) if order['image'] else None,
        is_bfv=not order['image'], instance_group=None, requested_destination=None,
        scheduler_hints={}, ignore_hosts=None, force_hosts=None, force_nodes=None,
        pci_requests=None, numa_topology=None)


def main(configuration: str, hosts: int, candidates: int) -> None:
    """Answer orders."""
    from tests.soak import orders
    logging.basicConfig(level=logging.WARNING)
    conf = nova.conf.CONF
    conf([], project='nova', default_config_files=[configuration])
    conf_module.register_opts(conf)
    objects.register_all()
    orders.serve(Scheduler(hosts, candidates).answer)


if __name__ == '__main__':
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
