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

"""Puts synthetic VMs and measures into a Gnocchi of :mod:`.bench_gnocchi_server`, for reading.

A program of its own, which runs Gnocchi's own code: resources and metrics go into its indexer in
bulk, and series into its storage as its metricd would have written them after days. To hand them
in as measures and have them aggregated takes a hundred times as long, and is not what is measured.
"""

from __future__ import annotations

import argparse
import time
from typing import Any, Iterator
import uuid

from gnocchi import archive_policy
from gnocchi import carbonara
from gnocchi import chef
from gnocchi.cli import metricd
from gnocchi import incoming
from gnocchi import indexer
from gnocchi.indexer import sqlalchemy_base
from gnocchi import service
from gnocchi import storage
import numpy as np
import sqlalchemy

from tracon_watcher import numerals
from tracon_watcher.telemetry import meters

POLICY, OTHERS = 'tracon', 'low'
GRANULARITY = 60
_BATCH = 500


def main() -> None:
    parser = argparse.ArgumentParser(prog='bench_gnocchi_fill')
    parser.add_argument('configuration')
    parser.add_argument('--vms', type=numerals.whole(0), default=0,
                        help='number of VMs to add, with their series')
    parser.add_argument('--other-metrics', type=numerals.whole(0), default=0,
                        help='other metrics of a VM, whose names alone are in the indexer')
    parser.add_argument('--points', type=numerals.whole(0), default=0,
                        help='points of a series, a minute apart')
    parser.add_argument('--aggregate', action='store_true',
                        help='aggregate the measures received over the API, as metricd does')
    arguments = parser.parse_args()
    conf = service.prepare_service(['--config-file', arguments.configuration], log_to_std=True)
    if arguments.aggregate:
        aggregate(conf)
    else:
        fill(conf, arguments.vms, arguments.other_metrics, arguments.points)


def aggregate(conf: Any) -> None:
    """Do metricd's work once."""
    coordinator = metricd.get_coordinator_and_start(uuid.uuid4().bytes, conf.coordination_url)
    incoming_driver = incoming.get_driver(conf)
    worker = chef.Chef(coordinator, incoming_driver, indexer.get_driver(conf),
                       storage.get_driver(conf))
    for sack in incoming_driver.iter_sacks():
        worker.process_new_measures_for_sack(sack, blocking=True, sync=True)
    coordinator.stop()


def fill(conf: Any, vms: int, other_metrics: int, points: int) -> None:
    """Put resources, metrics and series in."""
    index, store = indexer.get_driver(conf), storage.get_driver(conf)
    index.create_archive_policy(archive_policy.ArchivePolicy(
        POLICY, 0, [archive_policy.ArchivePolicyItem(np.timedelta64(GRANULARITY, 's'), 7 * 1440)],
        ['last']))
    schema = index.get_resource_type_schema()
    # The attributes that Ceilometer gives an instance.
    attributes = {name: {'type': 'string', 'required': False, 'min_length': 0, 'max_length': 255}
                  for name in ('host', 'display_name', 'flavor_id', 'flavor_name', 'image_ref')}
    index.create_resource_type(schema.resource_type_from_dict('instance', attributes, 'creating'))
    policy = index.get_archive_policy(POLICY)
    aggregation = policy.get_aggregation('last', np.timedelta64(GRANULARITY, 's'))
    newest = int(time.time()) // GRANULARITY * GRANULARITY - GRANULARITY
    times = (np.datetime64(newest, 's') - np.arange(points)[::-1] * np.timedelta64(
        GRANULARITY, 's')).astype('datetime64[ns]')
    rng = np.random.default_rng(0)
    for begin in range(0, vms, _BATCH):
        resources = [_resource(number) for number in range(begin, min(begin + _BATCH, vms))]
        metrics = [metric for one in resources for metric in _metrics(one, other_metrics)]
        with index.facade.writer() as session:
            resource_class = index._resource_type_to_mappers(session, 'instance')['resource']
            session.execute(sqlalchemy.insert(resource_class), resources)
            session.execute(sqlalchemy.insert(sqlalchemy_base.Metric), metrics)
        for fields in metrics:
            if fields['archive_policy_name'] == POLICY:
                metric = sqlalchemy_base.Metric(**fields)
                metric.archive_policy = policy
                values = np.cumsum(rng.integers(0, 6 * 10**10, points)).astype(float)
                _store(store, metric, aggregation, times, values)


def _resource(number: int) -> dict[str, Any]:
    resource = uuid.uuid4()
    return {'id': resource, 'original_resource_id': str(resource), 'type': 'instance',
            'creator': 'admin', 'display_name': f'synthetic-{number}',
            'host': f'synthetic-{number // 30}', 'flavor_id': 'synthetic',
            'flavor_name': 'synthetic', 'image_ref': 'synthetic'}


def _metrics(resource: dict[str, Any], others: int) -> Iterator[dict[str, Any]]:
    names = [(meter.name, POLICY) for meter in meters.VM_METERS
             if meter.everywhere and meter.feeds != meters.OWN_LIMITS]
    names += [(f'other.{number}', OTHERS) for number in range(others)]
    for name, policy in names:
        yield {'id': uuid.uuid4(), 'archive_policy_name': policy, 'creator': 'admin',
               'resource_id': resource['id'], 'name': name}


def _store(store: Any, metric: Any, aggregation: Any, times: Any, values: Any) -> None:
    series = carbonara.AggregatedTimeSerie.from_data(aggregation, times, values)
    store._create_metric(metric)
    parts = []
    for key, split in series.split():
        offset, data = split.serialize(key, compressed=True)
        parts.append((key, aggregation, data, offset))
    store._store_metric_splits({metric: parts})


if __name__ == '__main__':
    main()
