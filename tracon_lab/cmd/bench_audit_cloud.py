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

"""The synthetic cloud of ``tracon bench audit``: its VMs, and what services say of them.

None of it was measured. Sizes and demands are drawn so that a few hosts in ten are crowded, some
VMs are in server groups, and some must not move, as in a real one.
"""

from __future__ import annotations

import dataclasses
import json
import time
from typing import Any, Iterator, Mapping
import uuid

import numpy as np

from tracon_lab.cmd import bench_cluster
from tracon_watcher.characteristics import COUNT, CPU
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster as cluster_module

ZONE = 'synthetic'
#: As many entries as Nova lists at once.
_PAGE = 1000
#: What Nova says of shares, which it is asked for VM by VM.
_NO_SHARES = [b'{"shares": []}']
#: vCPUs for one of the host's cores.
OVERCOMMIT = 4
#: vCPUs, MiB of memory and GiB of disk of the flavors, and how often each is taken.
_FLAVORS = ((1, 2048, 20), (2, 4096, 40), (4, 8192, 80), (8, 16384, 160))
_SHARES = (0.4, 0.35, 0.2, 0.05)
#: What the largest host offers is some times what its VMs have: it has room for newcomers.
_ROOM = 1.15
#: Share of the hosts whose VMs do more than others', and how many times as much.
_HOT, _MORE = 0.1, 2.0
#: What the VMs of a host want together on the average, of :func:`.bench_cluster.capacity`.
_BUSY = np.array([0.2, 0.2, 1.0, 0.4])
#: Share of its time alone that a VM waits for storage at most.
_WAIT = 0.04
_LOCKED, _OPTED_OUT, _LIMITED, _GROUPED = 0.01, 0.01, 0.1, 0.05
#: Share of those with a limit that suffer more.
_BREACHED = 0.05
_POLICIES = ('anti-affinity', 'affinity', 'soft-anti-affinity', 'soft-affinity')


@dataclasses.dataclass(frozen=True)
class Vm:
    """One VM, as an administrator sees it.

    :param memory: MiB
    :param disk: GiB
    """

    uuid: str
    host: str
    vcpus: int
    memory: int
    disk: int
    locked: bool
    opted_out: bool


@dataclasses.dataclass(frozen=True)
class Cloud:
    """All of it.

    :param state: what the snapshot says
    :param vms: n, in the order of ``state``
    :param groups: name, policy and members of each server group
    :param vcpus: of each host, and likewise ``memory`` and ``disk``
    """

    state: cluster_module.ClusterState
    vms: tuple[Vm, ...]
    groups: tuple[tuple[str, str, tuple[str, ...]], ...]
    vcpus: int
    memory: int
    disk: int

    @property
    def cores(self) -> np.ndarray:
        """CPU in use, (n,), in cores."""
        found: np.ndarray = self.state.profiles[:, CPU].sum(axis=1)
        return found


def build(hosts: int, vms: int, seed: int = 1) -> Cloud:
    """Draw a cloud."""
    rng = np.random.default_rng([seed, hosts, vms])
    own = np.sort(np.arange(vms) % hosts)
    names = [f'compute-{index:05}' for index in range(hosts)]
    flavor = rng.choice(len(_FLAVORS), vms, p=_SHARES)
    sizes = np.array(_FLAVORS)[flavor]
    total = [int(size) for size in
             _ROOM * np.array([np.bincount(own, column, hosts).max() for column in sizes.T])]
    cores = max(total[0] // OVERCOMMIT, 1)
    # Larger ones do more, and a few of any size much more than most.
    demand = sizes[:, :1] * rng.exponential(1.0, (vms, 1)) * rng.exponential(1.0, (vms, COUNT))
    demand *= _BUSY * bench_cluster.capacity(cores) / (demand.sum(axis=0) / hosts)
    hot = rng.random(hosts) < _HOT
    demand[hot[own]] *= _MORE
    demand[:, CPU] *= np.minimum(sizes[:, :1] / demand[:, CPU].sum(axis=1, keepdims=True), 1.0)
    waits = rng.uniform(0.0, _WAIT, vms)
    locked, opted_out = rng.random(vms) < _LOCKED, rng.random(vms) < _OPTED_OUT
    uuids = [str(uuid.UUID(int=int(seed) << 64 | index, version=4)) for index in range(vms)]
    now = time.time()
    first = np.searchsorted(own, np.arange(hosts + 1))
    state = cluster_module.build(
        [cluster_module.Host(name, tuple(
            cluster_module.Resident(uuids[row], demand[row], vcpus=int(sizes[row, 0]),
                                    storage_wait=float(waits[row]))
            for row in range(first[index], first[index + 1])), bench_cluster.HOST_TYPE,
            cluster_module.LOCAL, now, cores) for index, name in enumerate(names)],
        None, 1, now)
    state = _with_limits(rng, state)
    return Cloud(
        state,
        tuple(Vm(uuids[row], names[own[row]], *map(int, sizes[row]), bool(locked[row]),
                 bool(opted_out[row])) for row in range(vms)),
        tuple(_groups(rng, own, uuids)), cores, total[1], total[2])


def _with_limits(rng: np.random.Generator,
                 state: cluster_module.ClusterState) -> cluster_module.ClusterState:
    """Give some VMs the limit that a few of them breach now."""
    suffered = np.exp(assessment.Assessor(state).log_responses()[0])
    limit = max(float(np.quantile(suffered, 1 - _BREACHED)), 1.01)
    limited = rng.random(len(state.uuids)) < _LIMITED
    return dataclasses.replace(state, max_slowdown=np.where(limited, limit, np.inf))


def _groups(rng: np.random.Generator, own: np.ndarray,
            uuids: list[str]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield server groups that hold now: of one host's VMs, or each of another one's."""
    left = rng.permutation(len(uuids))[:int(len(uuids) * _GROUPED)]
    for number, start in enumerate(range(0, len(left) - 2, 3)):
        policy = _POLICIES[number % len(_POLICIES)]
        members = left[start:start + 3]
        if policy.endswith('anti-affinity'):
            members = members[np.unique(own[members], return_index=True)[1]]
        else:
            neighbours = np.flatnonzero(own == own[members[0]])
            members = neighbours[:2]
        if len(members) > 1:
            yield f'group-{number}', policy, tuple(uuids[row] for row in members)


class Api:
    """Nova's, Placement's or Neutron's API, answered from memory as on the wire: pages of JSON."""

    def __init__(self, cloud: Cloud, wait: float) -> None:
        self.requests = 0
        self._wait = wait
        self._pages = {
            '/servers/detail': _bodies('servers', [_server(vm) for vm in cloud.vms]),
            '/os-server-groups': _bodies('server_groups', [
                {'id': name, 'name': name, 'policy': policy, 'members': list(members),
                 'rules': {}, 'project_id': 'project', 'user_id': 'user'}
                for name, policy, members in cloud.groups]),
            '/os-migrations': _bodies('migrations', []),
            '/os-services': _bodies('services', [
                {'id': name, 'binary': 'nova-compute', 'host': name, 'zone': ZONE,
                 'status': 'enabled', 'state': 'up', 'disabled_reason': None,
                 'forced_down': False, 'updated_at': '2026-01-01T00:00:00.000000'}
                for name in cloud.state.hosts], len(cloud.state.hosts)),
            '/os-hypervisors/detail': _bodies('hypervisors', [
                {'id': name, 'hypervisor_hostname': name, 'hypervisor_type': 'QEMU',
                 'service': {'host': name}} for name in cloud.state.hosts],
                len(cloud.state.hosts)),
            '/allocation_candidates': [json.dumps(_candidates(cloud)).encode()],
            '/ports': _bodies('ports', [
                {'device_id': vm.uuid, 'binding:vnic_type': 'normal'} for vm in cloud.vms])}

    def get(self, path: str, params: Mapping[str, Any], microversion: str | None) -> Any:
        """Answer as a service proxy of openstacksdk does."""
        import requests
        self.requests += 1
        if self._wait:
            time.sleep(self._wait)
        pages = _NO_SHARES if path.endswith('/shares') else self._pages[path]
        page = -(-int(params.get('offset', 0)) // _PAGE)
        if 'marker' in params:
            page = int(params['marker'][0])
        response = requests.Response()
        response.status_code = 200
        response.headers['Content-Type'] = 'application/json'
        response._content = pages[min(page, len(pages) - 1)]
        return response


class Connection:
    """Stands where ``openstack.connection.Connection`` does.

    :param wait: seconds at each request
    """

    def __init__(self, cloud: Cloud, wait: float = 0.0) -> None:
        self.compute = self.network = self.placement = Api(cloud, wait)


def _bodies(key: str, entries: list[Mapping[str, Any]],
            page: int = _PAGE) -> list[bytes]:
    """Return the answers, page by page; after them an empty one, as for server groups."""
    bodies = []
    for number, start in enumerate(range(0, len(entries), page or 1)):
        body: dict[str, Any] = {key: entries[start:start + page]}
        if start + page < len(entries):
            body[f'{key}_links'] = [{'rel': 'next', 'href': f'http://nova/?marker={number + 1}'}]
        bodies.append(json.dumps(body).encode())
    return bodies + [json.dumps({key: []}).encode()]


def node_uuid(index: int) -> str:
    """Return the uuid of a compute node, by which Placement knows it too."""
    return f'00000000-0000-4000-8000-{index:012}'


def _candidates(cloud: Cloud) -> dict[str, Any]:
    """Return what Placement says of all hosts, where one more MiB would fit."""
    count = len(cloud.state.hosts)
    used = [np.bincount(cloud.state.host, [getattr(vm, kind) for vm in cloud.vms], count)
            for kind in ('vcpus', 'memory', 'disk')]
    whole = (cloud.vcpus * OVERCOMMIT, cloud.memory, cloud.disk)
    return {
        'allocation_requests': [
            {'allocations': {node_uuid(index): {'resources': {'MEMORY_MB': 1}}}, 'mappings': {
                '': [node_uuid(index)]}} for index in range(count)],
        'provider_summaries': {
            node_uuid(index): {
                'resources': {name: {'capacity': capacity, 'used': int(one[index])}
                              for name, capacity, one in zip(
                                  ('VCPU', 'MEMORY_MB', 'DISK_GB'), whole, used)},
                'traits': ['COMPUTE_NODE', 'COMPUTE_VOLUME_EXTEND', 'HW_CPU_X86_AVX2'],
                'parent_provider_uuid': None, 'root_provider_uuid': node_uuid(index)}
            for index in range(count)}}


def _server(vm: Vm) -> dict[str, Any]:
    """Return a server as Nova lists it from microversion 2.98 on, with all its fields."""
    return {
        'id': vm.uuid, 'name': f'vm-{vm.uuid[:8]}', 'status': 'ACTIVE', 'tenant_id': 'project',
        'user_id': 'user', 'hostId': 'f' * 56, 'progress': 0, 'accessIPv4': '', 'accessIPv6': '',
        'created': '2026-01-01T00:00:00Z', 'updated': '2026-01-01T00:00:00Z',
        'description': None, 'config_drive': '', 'key_name': 'key', 'locked': vm.locked,
        'locked_reason': None, 'tags': [], 'trusted_image_certificates': None,
        'metadata': {'tracon:exclude': 'true'} if vm.opted_out else {},
        'addresses': {'net': [{'version': 4, 'addr': '192.0.2.1', 'OS-EXT-IPS:type': 'fixed',
                               'OS-EXT-IPS-MAC:mac_addr': '52:54:00:00:00:01'}]},
        'security_groups': [{'name': 'default'}], 'server_groups': [], 'host_status': 'UP',
        'links': [{'rel': rel, 'href': f'http://nova/servers/{vm.uuid}'}
                  for rel in ('self', 'bookmark')],
        'flavor': {'vcpus': vm.vcpus, 'ram': vm.memory, 'disk': vm.disk, 'ephemeral': 0,
                   'swap': 0, 'original_name': f'f{vm.vcpus}', 'extra_specs': {}},
        'image': {'id': 'image', 'properties': {'os_type': 'linux', 'hw_disk_bus': 'virtio'}},
        'pinned_availability_zone': None, 'OS-DCF:diskConfig': 'MANUAL',
        'OS-EXT-AZ:availability_zone': ZONE, 'OS-EXT-SRV-ATTR:host': vm.host,
        'OS-EXT-SRV-ATTR:hypervisor_hostname': vm.host,
        'OS-EXT-SRV-ATTR:instance_name': 'instance-00000001',
        'OS-EXT-SRV-ATTR:hostname': f'vm-{vm.uuid[:8]}', 'OS-EXT-SRV-ATTR:kernel_id': '',
        'OS-EXT-SRV-ATTR:launch_index': 0, 'OS-EXT-SRV-ATTR:ramdisk_id': '',
        'OS-EXT-SRV-ATTR:reservation_id': 'r-synthetic', 'OS-EXT-STS:power_state': 1,
        'OS-EXT-STS:root_device_name': '/dev/vda', 'OS-EXT-SRV-ATTR:user_data': None,
        'OS-EXT-STS:task_state': None, 'OS-EXT-STS:vm_state': 'active',
        'OS-SRV-USG:launched_at': '2026-01-01T00:00:00.000000', 'OS-SRV-USG:terminated_at': None,
        'os-extended-volumes:volumes_attached': []}
