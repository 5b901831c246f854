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

"""Tells of VMs as Nova does: versioned notifications through oslo.messaging."""

from __future__ import annotations

import threading
import time
from typing import Any

from oslo_config import cfg
import oslo_messaging

from tests.soak import world as worlds

_TOPIC = 'versioned_notifications'


class Reader:
    """Hears what Nova tells, as Watcher's collector does, whose queue would grow otherwise."""

    def info(self, _context: Any, _publisher: str, _event: str, _payload: Any,
             _metadata: Any) -> None:
        """Take a notification, and do nothing."""


class Notifier:
    """Publishes to the exchange ``nova``.

    :ivar lost: how many could not be published, as while the broker is away
    """

    def __init__(self, configuration: str, world: worlds.World) -> None:
        conf = cfg.ConfigOpts()
        conf([], project='nova', default_config_files=[configuration])
        self._world = world
        self._transport = oslo_messaging.get_notification_transport(conf)
        # Nova's own would be tried again for ever, and requests wait for it.
        self._notifier = oslo_messaging.Notifier(
            self._transport, 'nova-compute:synthetic', driver='messagingv2', topics=[_TOPIC],
            retry=1)
        self._lock = threading.Lock()
        self.lost = 0
        self._reading = oslo_messaging.get_notification_transport(conf)
        self._reader = oslo_messaging.get_notification_listener(
            self._reading, [oslo_messaging.Target(exchange='nova', topic=_TOPIC)], [Reader()],
            executor='threading')
        self._reader.start()
        # Nova's services tell of themselves when they start, which makes the exchange.
        self._notifier.info({}, 'service.update', _object('ServiceStatusPayload', {}))

    def tell(self, operation: str, vm: worlds.Vm) -> None:
        """Tell that something was done to a VM, such as ``create``."""
        try:
            self._notifier.info({}, f'instance.{operation}.end', self._payload(vm))
        except oslo_messaging.MessagingException:
            with self._lock:
                self.lost += 1

    def stop(self) -> None:
        """End."""
        self._reader.stop()
        self._reader.wait()
        self._reading.cleanup()
        self._transport.cleanup()

    def _payload(self, vm: worlds.Vm) -> dict[str, Any]:
        kind = vm.kind
        return _object('InstanceActionPayload', {
            'uuid': vm.uuid, 'display_name': f'{kind.flavor}-{vm.uuid[:8]}',
            'tenant_id': kind.project, 'host': self._world.hosts[vm.host],
            'node': self._world.hosts[vm.host], 'state': 'active', 'task_state': None,
            'image_uuid': kind.image, 'launched_at': time.strftime(
                '%Y-%m-%dT%H:%M:%SZ', time.gmtime(vm.launched)),
            'flavor': _object('FlavorPayload', {
                'name': kind.flavor, 'vcpus': kind.vcpus, 'memory_mb': 1024 * kind.vcpus,
                'root_gb': 10, 'ephemeral_gb': 0, 'swap': 0, 'extra_specs': kind.extra_specs})})


def _object(name: str, data: dict[str, Any]) -> dict[str, Any]:
    return {'nova_object.name': name, 'nova_object.namespace': 'nova',
            'nova_object.version': '1.0', 'nova_object.data': data}
