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
"""Watcher's workload_stabilization, the real one, over simulated hosts."""

from __future__ import annotations

import random
from typing import Any, Sequence
from unittest import mock
import uuid

from tracon_lab.simulated_cloud import demand
from tracon_watcher.characteristics import FloatArray
from tracon_watcher.characteristics import IntArray

#: Standard deviation of hosts' CPU use from which VMs are moved.
THRESHOLD = 0.1


def audit(names: Sequence[str], cores: int, capacity: float, host: IntArray, numbers: IntArray,
          vcpus: IntArray, used: FloatArray, seed: int) -> list[tuple[int, int]]:
    """Return the migrations of an audit: numbers of VMs, and hosts.

    :param capacity: vCPUs that a host takes
    :param host: (m,) of each VM
    :param numbers: (m,) of the VMs, as :func:`.demand.vm_uuid` has them
    :param vcpus: (m,)
    :param used: (m,) share of its vCPUs' time that each used
    """
    # Imported here: a process that knows Nova's options takes none of Watcher's.
    from watcher.decision_engine.model import element
    from watcher.decision_engine.model import model_root
    model, values = model_root.ModelRoot(), {}
    nodes = []
    for place, name in enumerate(names):
        node = element.ComputeNode(
            uuid=str(uuid.uuid5(uuid.NAMESPACE_DNS, name)), hostname=name, state='up',
            status='enabled', disabled_reason=None, memory=10 ** 9, memory_mb_reserved=0,
            memory_ratio=1.0, disk=10 ** 6, disk_gb_reserved=0, disk_ratio=1.0, vcpus=cores,
            vcpu_reserved=0, vcpu_ratio=capacity / cores)
        model.add_node(node)
        nodes.append(node)
        here = host == place
        values[node.uuid] = 100.0 * float(vcpus[here] @ used[here]) / cores
    known = {}
    for row, number in enumerate(numbers.tolist()):
        one = element.Instance(
            uuid=demand.vm_uuid(number), name=f'vm-{number}', state='active', memory=1,
            disk=1, vcpus=int(vcpus[row]), locked=False, metadata={}, watcher_exclude=False)
        model.add_instance(one)
        model.map_instance(one, nodes[host[row]])
        values[one.uuid], known[one.uuid] = 100.0 * float(used[row]), number
    index = {name: place for place, name in enumerate(names)}
    random.seed(seed)
    return [(known[action['input_parameters']['resource_id']],
             index[action['input_parameters']['destination_node']])
            for action in _strategy(model, values).execute().actions]


def _strategy(model: Any, values: dict[str, float]) -> Any:
    """Return the strategy, with its defaults, with data from memory."""
    from oslo_config import cfg
    from watcher.common import utils
    from watcher.decision_engine.strategy.strategies import workload_stabilization
    cfg.CONF([], project='watcher', default_config_files=[])

    class Strategy(workload_stabilization.WorkloadStabilization):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(mock.Mock(datasources=None))
            self._compute_model = model
            self._datasource_backend = mock.Mock(
                statistic_aggregation=lambda resource, *_how: values[resource.uuid])

    made = Strategy()
    given: dict[str, Any] = {'thresholds': {'instance_cpu_usage': THRESHOLD}}
    utils.StrictDefaultValidatingDraft4Validator(made.get_schema()).validate(given)
    made.input_parameters = utils.Struct(given)
    return made
