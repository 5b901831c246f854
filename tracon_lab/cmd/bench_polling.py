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

"""``tracon bench polling``: what a polling cycle costs, beside Ceilometer's own pollsters."""

from __future__ import annotations

import argparse
import logging
import pathlib
import statistics
import tempfile
import time
import tracemalloc
import types
from typing import Any, Callable, Iterator
import uuid

from cliff import lister

from tracon_watcher import numerals

_COLUMNS = ('source', 'what', 'pollsters', 'calls', 'samples', 'milliseconds',
            'cpu_milliseconds', 'share_of_stock', 'MiB')
#: Ceilometer's meters of the same quantities, as far as it has them.
STOCK = ('cpu', 'disk.device.read.requests', 'disk.device.write.requests',
         'disk.device.read.latency', 'disk.device.write.latency')


class Polling(lister.Lister):
    """Time one polling cycle on a host with many VMs, ours and Ceilometer's own.

    Ceilometer's polling task runs both on the same recorded statistics: directly, through
    libvirt's test driver, and through that in libvirtd where one runs. "statistics" is the call to
    libvirt alone; "cycle" includes signing the samples and handing them to the message bus.
    Discovery, the same for both, is left out. The memory is the peak of a cycle. Needs ceilometer
    and libvirt-python (the extra "ceilometer").
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('--domains', type=numerals.whole(1), default=200, metavar='N',
                            help='VMs on the host (default: %(default)s)')
        parser.add_argument('--rounds', type=numerals.whole(1), default=7, metavar='N',
                            help='number of rounds, whose median is shown (default: %(default)s)')
        parser.add_argument('--uri', metavar='URI',
                            help='URI of a libvirt whose VMs are polled instead, such as '
                                 'qemu:///system')
        return parser

    def take_action(self, arguments: argparse.Namespace) -> tuple[tuple[str, ...], list[Any]]:
        for name in ('ceilometer', 'oslo_service'):
            logging.getLogger(name).setLevel(logging.WARNING)
        with tempfile.TemporaryDirectory(prefix='tracon-bench-') as folder:
            return _COLUMNS, list(measure(arguments, pathlib.Path(folder)))


def measure(arguments: argparse.Namespace, folder: pathlib.Path) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of the table."""
    from tracon_lab.cmd import bench_polling_sources as sources
    if arguments.uri is not None:
        connection, uuids = sources.real(arguments.uri)
        found = {arguments.uri: connection}
    else:
        uuids = [str(uuid.UUID(int=number + 1)) for number in range(arguments.domains)]
        found = sources.connections(uuids, folder)
    conf = configuration()
    for source, connection in found.items():
        arms: dict[tuple[str, str], Callable[[], int]] = {}
        for name, build in (('stock', Stock), ('ours', Ours)):
            arm = build(conf, connection, uuids)
            arms['statistics', name] = arm.statistics
            arms['cycle', name] = Cycle(conf, arm.pollsters, uuids)
        times: dict[tuple[str, str], list[tuple[float, float]]] = {key: [] for key in arms}
        calls, samples, memory = {}, {}, {}
        for key, work in arms.items():      # a first time, which is not timed
            before = connection.calls
            samples[key] = work()
            calls[key] = connection.calls - before
            memory[key] = _most_memory(work)
        for _round in range(arguments.rounds):
            for key, work in arms.items():
                start, cpu = time.perf_counter(), time.process_time()
                work()
                times[key].append((time.perf_counter() - start, time.process_time() - cpu))
        for what in ('statistics', 'cycle'):
            passed = {name: [1000 * statistics.median(column)
                             for column in zip(*times[what, name])] for name in ('stock', 'ours')}
            for name in ('stock', 'ours'):
                key = what, name
                yield (source, what, name, calls[key], samples[key] or None,
                       *(round(value, 2) for value in passed[name]),
                       round(passed[name][0] / passed['stock'][0], 4), round(memory[key], 2))


def configuration() -> Any:
    """Return Ceilometer's options with their defaults."""
    from ceilometer import opts
    from oslo_config import cfg
    conf = cfg.ConfigOpts()
    for group, options in opts.list_opts():
        conf.register_opts(list(options), group=None if group == 'DEFAULT' else group)
    conf([], project='ceilometer', default_config_files=[], default_config_dirs=[])
    return conf


class Ours:
    """The one pollster of VMs."""

    def __init__(self, conf: Any, connection: Any, uuids: list[str]) -> None:
        from tracon_watcher.telemetry import ceilometer
        from tracon_watcher.telemetry import libvirt
        pollster = ceilometer.VMPollster(conf)
        pollster.source = self._source = libvirt.Source(lambda: connection)
        self.pollsters = {'tracon.vm': pollster}

    def statistics(self) -> int:
        self._source.poll()
        return 0


class Stock:
    """Ceilometer's own: VM by VM."""

    def __init__(self, conf: Any, connection: Any, uuids: list[str]) -> None:
        from ceilometer.compute import pollsters
        from ceilometer.compute.pollsters import disk
        from ceilometer.compute.pollsters import instance_stats
        from ceilometer.compute.virt.libvirt import inspector
        # Made without its own way to a connection, which reads the configuration.
        self._inspector = inspector.LibvirtInspector.__new__(inspector.LibvirtInspector)
        self._inspector.conf = conf
        self._inspector.cache = {}
        self._inspector._libvirt_connection = connection
        self._instances = instances(uuids)
        classes = (instance_stats.CPUPollster, disk.PerDeviceReadRequestsPollster,
                   disk.PerDeviceWriteRequestsPollster, disk.PerDeviceDiskReadLatencyPollster,
                   disk.PerDeviceDiskWriteLatencyPollster)
        before = pollsters.GenericComputePollster.__dict__.get('_inspector')
        pollsters.GenericComputePollster._inspector = self._inspector
        try:
            self.pollsters = {name: made(conf) for name, made in zip(STOCK, classes)}
        finally:
            if before is None:
                del pollsters.GenericComputePollster._inspector
            else:
                pollsters.GenericComputePollster._inspector = before

    def statistics(self) -> int:
        for instance in self._instances:
            self._inspector.inspect_instance(instance, None)
            list(self._inspector.inspect_disks(instance, None))
        return 0


class Cycle:
    """One cycle of Ceilometer's polling task."""

    def __init__(self, conf: Any, pollsters: dict[str, Any], uuids: list[str]) -> None:
        from ceilometer.polling import manager
        self._sent = 0
        discovered = instances(uuids)
        task = manager.PollingTask(types.SimpleNamespace(
            conf=conf, keystone=None, hashrings=None, partition_coordinator=None, notifier=self,
            discover=lambda *unused: discovered, heartbeat=lambda *unused: None))
        source = manager.PollingSource({'name': 'bench', 'interval': 60, 'meters': ['*']})
        for name, pollster in pollsters.items():
            task.add(_Extension(name, pollster), source)
        self._task = task

    def sample(self, _context: Any, _event_type: str, payload: dict[str, Any]) -> None:
        """Count what is handed to the message bus."""
        self._sent += len(payload['samples'])

    def __call__(self) -> int:
        self._sent = 0
        self._task.poll_and_notify()
        return self._sent


class _Extension:

    def __init__(self, name: str, pollster: Any) -> None:
        self.name = name
        self.obj = pollster


def instances(uuids: list[str]) -> list[Any]:
    """Return instances as Ceilometer's discovery gives them."""
    from ceilometer.compute import discovery
    flavor = {'id': '42', 'name': 'm1.small', 'vcpus': 1, 'ram': 512, 'disk': 1, 'ephemeral': 0,
              'swap': 0}
    return [discovery.NovaLikeServer(**{
        'id': one, 'name': f'server {one}', 'flavor': flavor, 'image': {'id': one},
        'image_meta': {'base_image_ref': one, 'container_format': 'bare', 'disk_format': 'qcow2'},
        'os_type': 'hvm', 'architecture': 'x86_64', 'tenant_id': one, 'user_id': one,
        'OS-EXT-SRV-ATTR:instance_name': f'instance-{one[-8:]}',
        'OS-EXT-SRV-ATTR:host': 'compute', 'OS-EXT-STS:vm_state': 'running', 'hostId': one,
        'status': 'active', 'metadata': {}}) for one in uuids]


def _most_memory(work: Callable[[], Any]) -> float:
    tracemalloc.start()
    try:
        before, _peak = tracemalloc.get_traced_memory()
        work()
        return (tracemalloc.get_traced_memory()[1] - before) / 2**20
    finally:
        tracemalloc.stop()
