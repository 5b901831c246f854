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

"""Watcher's decision engine in the soak: audits by our strategy, on a model of the listed cloud.

Of Watcher's own, the database is missing: nothing has failed, and no other plan is under way.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import pathlib
import sys
import time
from typing import Any, Mapping

from keystoneauth1 import loading
from openstack import connection
from oslo_config import cfg
from watcher.common import utils
from watcher.decision_engine.model import element
from watcher.decision_engine.model import model_root

from tests.soak import orders
from tests.soak import services
from tracon_watcher.conf import decision_engine as options
from tracon_watcher.decision_engine import records
from tracon_watcher.decision_engine import snapshot_source
from tracon_watcher.decision_engine import strategy
from tracon_watcher.inventory import listing
from tracon_watcher.messaging import protocol
from tracon_watcher.placement import cluster
from tracon_watcher.placement import plan


class Strategy(strategy.InterferenceStrategy):
    """Ours, beside a Watcher that has no database."""

    def __init__(self, model: model_root.ModelRoot, cloud: connection.Connection) -> None:
        super().__init__(None)
        self._compute_model = model
        self._cloud = cloud
        self.input_parameters = utils.Struct({'max_migrations': 5})

    def _connect(self) -> Any:
        return self._cloud

    def _records(self, since: float) -> records.Records:
        return records.Records()


def model_of(cloud: connection.Connection) -> model_root.ModelRoot:
    """Return the cloud as Watcher's collector would have it."""
    nova = listing.Service('Nova', cloud.compute, listing.MICROVERSION)
    model = model_root.ModelRoot()
    names = [one['host'] for one in nova.pages('/os-services', 'services', {}, limited=False)]
    nodes = {}
    for number, name in enumerate(names):
        nodes[name] = element.ComputeNode(
            uuid=services.node_uuid(number), hostname=name, state='up', status='enabled',
            disabled_reason=None, memory=1048576, memory_mb_reserved=0, memory_ratio=1.0,
            disk=10000, disk_gb_reserved=0, disk_ratio=1.0, vcpus=128, vcpu_reserved=0,
            vcpu_ratio=4.0)
        model.add_node(nodes[name])
    for one in nova.pages('/servers/detail', 'servers', {}):
        flavor = one['flavor']
        made = element.Instance(
            uuid=one['id'], name=one['name'], state='active', memory=flavor['ram'],
            disk=flavor['disk'], vcpus=flavor['vcpus'], locked=False, metadata={},
            watcher_exclude=False)
        model.add_instance(made)
        model.map_instance(made, nodes[one['OS-EXT-SRV-ATTR:host']])
    return model


def believed(move: plan.Move, state: cluster.ClusterState) -> dict[str, Any]:
    """Return what a move rests on: what it is to change, and what its VMs demand."""
    return {**dataclasses.asdict(move), 'demand': {
        one.uuid: state.profiles[state.resident_index[one.uuid]].tolist()
        for one in move.changes if one.uuid in state.resident_index}}


def main(configuration: str, url: str) -> None:
    """Answer orders."""
    logging.basicConfig(level=logging.WARNING)
    cfg.CONF([], project='watcher', default_config_files=[configuration])
    options.register_opts(cfg.CONF)
    auth = loading.get_plugin_loader('v3password').load_from_options(
        auth_url=f'{url}/identity/v3', username='watcher', password='synthetic',
        user_domain_id='default', project_name='service', project_domain_id='default')
    session = loading.session.Session().load_from_options(auth=auth, timeout=60)
    cloud = connection.Connection(session=session, region_name='RegionOne', interface='internal')

    def answer(_order: Mapping[str, Any]) -> Mapping[str, Any]:
        model = model_of(cloud)
        began, own = time.perf_counter(), time.thread_time()
        listener = snapshot_source.listening(protocol.connector(cfg.CONF))
        before = listener.current
        ours = Strategy(model, cloud)
        try:
            solution = ours.execute()
        except Exception as error:
            # As in Watcher, where the audit fails and the next one may not.
            return {'failed': f'{type(error).__name__}: {error}'}
        # Another one may have come meanwhile.
        used = before or listener.current
        assert used is not None
        return {'wall': time.perf_counter() - began, 'own': time.thread_time() - own,
                'snapshot': used.cluster.generated_at,
                'believed': [believed(move, used.cluster) for move in ours._plan.moves],
                'moves': [(one['input_parameters']['resource_id'],
                           one['input_parameters']['source_node'],
                           one['input_parameters']['destination_node'])
                          for one in solution.actions]}
    orders.serve(answer)


if __name__ == '__main__':
    os.environ.setdefault('OS_LOG_CAPTURE', '1')
    main(str(pathlib.Path(sys.argv[1])), sys.argv[2])
