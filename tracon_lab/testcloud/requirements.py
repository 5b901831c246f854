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

"""What has to be there before a cloud can be started."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import shutil
import sys

from tracon_lab.testcloud import errors
from tracon_lab.testcloud import settings as settings_module

#: Programs of Debian packages.
PROGRAMS = {
    'mariadbd': 'mariadb-server', 'mariadb-install-db': 'mariadb-server',
    'mariadb': 'mariadb-client', 'mariadb-dump': 'mariadb-client',
    'rabbitmq-server': 'rabbitmq-server', 'epmd': 'rabbitmq-server', 'memcached': 'memcached',
    'libvirtd': 'libvirt-daemon-system', 'virtlogd': 'libvirt-daemon-system',
    'qemu-system-x86_64': 'qemu-system-x86', 'qemu-img': 'qemu-utils',
    'unshare': 'util-linux', 'nsenter': 'util-linux', 'mount': 'mount',
    'ip': 'iproute2', 'gcc': 'gcc', 'busybox': 'busybox-static', 'sqlite3': 'sqlite3',
}
#: Packages of the environment the cloud runs from.
PACKAGES = {
    'nova': 'nova', 'keystone': 'keystone', 'placement': 'openstack-placement',
    'glance': 'glance', 'neutron': 'neutron', 'ceilometer': 'ceilometer', 'gnocchi': 'gnocchi',
    'watcher': 'python-watcher', 'openstack': 'openstacksdk', 'libvirt': 'libvirt-python',
    'pymysql': 'PyMySQL', 'memcache': 'python-memcached',
}
# A UNIX socket's address has 107 bytes, and some lie deep below.
_LONGEST = 60
_PATH = '/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin'


def missing() -> str:
    """Return why no cloud can be started here; empty when one can."""
    if os.geteuid() != 0:
        return 'needs root: compute hosts are namespaces'
    system = sorted({package for name, package in PROGRAMS.items()
                     if shutil.which(name, path=_PATH) is None})
    if system:
        return f'needs system packages: apt install {" ".join(system)}'
    python = sorted(package for name, package in PACKAGES.items()
                    if importlib.util.find_spec(name) is None)
    if not (pathlib.Path(sys.prefix) / 'bin/uwsgi').exists():
        python.append('uWSGI')
    if python:
        return f'needs Python packages: {", ".join(python)} (the extra "cloud")'
    if not any(pathlib.Path('/boot').glob('vmlinuz-*')):
        return 'needs a kernel in /boot: apt install linux-image-cloud-amd64'
    return ''


def check(settings: settings_module.Settings) -> None:
    """Make sure that a cloud can be started.

    :raises CloudError: when something is missing
    """
    reason = missing()
    if reason:
        raise errors.CloudError(f'a test cloud {reason}')
    shown = str(settings.directory)
    if not settings.directory.is_absolute() or len(shown) > _LONGEST or any(
            one.isspace() or one in '%#;$' for one in shown):
        raise errors.CloudError(
            f'{shown!r} cannot be the directory of a cloud: name an absolute path of at most '
            f'{_LONGEST} characters, without spaces and without % # ; $')
