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

"""What guests boot: the testbed's kernel and program, in Glance."""

from __future__ import annotations

import hashlib
import pathlib
from typing import Any

import openstack

from tracon_lab.testbed import image
from tracon_lab.testcloud import settings as settings_module
from tracon_watcher.probe import images

#: The image to boot; the two others are parts of it.
GUEST = 'tracon-guest'
#: What the guest's kernel is told. What it does not know it hands on to the first program, which
#: finds its port and its disk there.
COMMAND_LINE = 'console=ttyS0 quiet panic=-1 mitigations=off port=/dev/ttyS1 scratch=/dev/vda'
_PROPERTIES = {
    'os_command_line': COMMAND_LINE,
    # The first is the console, the second the program's.
    'hw_serial_port_count': '2',
    # Without it a guest's clock is slow, and it boots for long.
    'hw_time_hpet': 'True',
    'hw_disk_bus': 'virtio',
    'hw_video_model': 'none',
}


def publish(connection: openstack.connection.Connection,
            settings: settings_module.Settings) -> None:
    """Upload what is missing, or has become another; needs a compiler and a kernel."""
    built = image.build(images.default_cache())
    disk = settings.cache / f'disk-{settings.disk_mib}.img'
    settings.cache.mkdir(parents=True, exist_ok=True)
    image.written_file(disk, settings.disk_mib << 20)
    known = {one['name']: one for one in connection.image.get('/images').json()['images']}
    kernel = _upload(connection, known, 'tracon-kernel', 'aki', built.kernel, {})
    initramfs = _upload(connection, known, 'tracon-initramfs', 'ari', built.initramfs, {})
    _upload(connection, known, GUEST, 'raw', disk, {
        **_PROPERTIES, 'kernel_id': kernel, 'ramdisk_id': initramfs})


def _upload(connection: openstack.connection.Connection, known: dict[str, Any], name: str,
            disk_format: str, path: pathlib.Path, properties: dict[str, str]) -> str:
    mark = hashlib.sha256(repr((path.name, path.stat().st_size, properties)).encode()).hexdigest()
    found = known.get(name)
    if found is not None:
        if found.get('tracon_mark') == mark and found['status'] == 'active':
            return str(found['id'])
        _ok(connection.image.delete(f'/images/{found["id"]}'))
    container = disk_format if disk_format in ('aki', 'ari') else 'bare'
    made = _ok(connection.image.post('/images', json={
        'name': name, 'disk_format': disk_format, 'container_format': container,
        'visibility': 'public', 'tracon_mark': mark, **properties})).json()
    with path.open('rb') as stream:
        _ok(connection.image.put(f'/images/{made["id"]}/file', data=stream, headers={
            'Content-Type': 'application/octet-stream'}))
    return str(made['id'])


def _ok(answer: Any) -> Any:
    openstack.exceptions.raise_from_response(answer)
    return answer
