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

"""Nova's services, and a nova-compute for each host."""

from __future__ import annotations

from tracon_lab.testcloud.configuration import companions
from tracon_lab.testcloud.configuration import ini
from tracon_lab.testcloud import service
from tracon_lab.testcloud import settings as settings_module

#: Where a host sees nova-compute's files; libvirt's folder is each host's own.
STATE = '/var/lib/libvirt/nova'
_HELPERS = ('nova_sys_admin', 'privsep_osbrick', 'vif_plug_ovs_privileged',
            'vif_plug_linux_bridge_privileged')


def write(settings: settings_module.Settings) -> None:
    """Write nova.conf, the databases apart from it, and a file each host."""
    etc = settings.configuration / 'nova'
    ini.write(etc / 'api-paste.ini',
              companions.installed('nova/api-paste.ini').read_text(encoding='utf-8'))
    ini.write(etc / 'nova.conf', ini.render(common(settings), settings.nova_extra))
    ini.write(etc / 'control.conf', ini.render(control(settings)))
    ini.write(etc / 'scheduler.conf', ini.render(
        {'scheduler': {'workers': settings.scheduler_workers}}, settings.scheduler_extra))
    for host in settings.hosts:
        ini.write(etc / f'{host}.conf', ini.render(compute(settings, host),
                                                   settings.compute_extra))


def common(settings: settings_module.Settings) -> dict[str, ini.Section]:
    """Return nova.conf, which all of Nova's services read."""
    account = ini.account(settings)
    return {
        'DEFAULT': {
            'debug': settings.debug,
            'transport_url': settings.transport_url,
            'state_path': settings.data / 'nova',
            'my_ip': settings_module.ADDRESS,
            'host': 'control',
            # Who waits for a cloud to start or to notice a fault waits for these.
            'report_interval': 5, 'service_down_time': 20, 'update_resources_interval': 10,
            'graceful_shutdown_timeout': 5,
        },
        'api': {'auth_strategy': 'keystone'},
        'keystone_authtoken': ini.doorkeeper(settings, 'compute'),
        'service_user': {'send_service_user_token': True, **account},
        'placement': account,
        'neutron': {**account, 'service_metadata_proxy': False},
        'glance': {**account, 'endpoint_override': settings.url('glance')},
        'cinder': account,
        'keystone': account,
        'barbican': account,
        'conductor': {'workers': 1},
        'scheduler': {'discover_hosts_in_cells_interval': 30},
        'notifications': {'notification_format': 'both',
                          'notify_on_state_change': 'vm_and_task_state'},
        'oslo_messaging_rabbit': ini.messaging(),
        'oslo_messaging_notifications': {'driver': 'messagingv2'},
        'oslo_concurrency': ini.concurrency(settings),
        'vnc': {'enabled': False},
        'spice': {'enabled': False},
        # The tests' guests are many, small and short-lived.
        'quota': {'cores': -1, 'instances': -1, 'ram': -1},
    }


def control(settings: settings_module.Settings) -> dict[str, ini.Section]:
    """Return the databases, which nova-compute must not know."""
    return {'api_database': ini.database(settings, 'nova_api'),
            'database': ini.database(settings, 'nova')}


def compute(settings: settings_module.Settings, host: str) -> dict[str, ini.Section]:
    """Return what is a host's own: real guests by emulation, on the host's own cores."""
    sockets = settings.directory / 'hosts/%s/run/libvirt-sock'
    helper = service.program('privsep-helper') + ''.join(
        f' --config-file {settings.configuration / "nova" / name}'
        for name in ('nova.conf', f'{host}.conf'))
    return {
        'DEFAULT': {
            'host': host,
            'my_ip': settings.host_address(host),
            'compute_driver': 'libvirt.LibvirtDriver',
            # A guest's files have the same path on every host, yet are others.
            'state_path': STATE,
            'instances_path': f'{STATE}/instances',
            'cpu_allocation_ratio': settings.allocation_ratio,
            # Hosts share this machine's memory and its disk, so none may take all of it.
            'ram_allocation_ratio': round(1 / len(settings.hosts), 3),
            'disk_allocation_ratio': round(1 / len(settings.hosts), 3),
            'reserved_host_memory_mb': 512,
            # What a guest reads and writes has to be there.
            'preallocate_images': 'space',
            'resume_guests_state_on_host_boot': True,
        },
        'compute': {'cpu_shared_set': settings.host_cores(host),
                    'live_migration_wait_for_vif_plug': False},
        # A kernel begins like a disk with a partition table, which has to be all that it is.
        'workarounds': {'disable_deep_image_inspection': True},
        # Serial lines that are sockets: see testcloud/guest.py.
        'serial_console': {'enabled': True,
                           'proxyclient_address': settings.host_address(host)},
        'libvirt': {
            'virt_type': 'qemu',
            'images_type': 'raw',
            'disk_cachemodes': 'file=none',
            # The other hosts' sockets can be reached: only /run/libvirt is hidden.
            'live_migration_uri': f'qemu+unix:///system?socket={sockets}',
            'live_migration_inbound_addr': host,
            'live_migration_permit_auto_converge': True,
            'live_migration_timeout_action': 'force_complete',
        },
        **{name: {'helper_command': helper} for name in _HELPERS},
    }
