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

"""Clouds drawn at random for audits, and what Nova and Placement would say to each step of a plan.

The simulation knows nothing of the planner: it keeps allocations and hosts of VMs as Nova does,
and judges by Nova's own rules.
"""

from __future__ import annotations

import dataclasses
import datetime
import json
import random

from hypothesis import strategies
import requests
from watcher.decision_engine.model import element
from watcher.decision_engine.model import model_root

from tests import synthetic
from tracon_watcher.placement import cluster
from tracon_watcher.placement import limits

NOW = 1_800_000_000.0
COOLDOWN = 3600.0
#: Of each host; far fewer than Nova may give its VMs, so that they suffer.
CORES = 1
ZONES = ('north', 'south')
POLICIES = ('affinity', 'anti-affinity', 'soft-affinity', 'soft-anti-affinity')
RESOURCES = ('VCPU', 'MEMORY_MB', 'DISK_GB')


class Refused(AssertionError):
    """Nova or Placement would not have done this."""


@dataclasses.dataclass
class Vm:
    uuid: str
    host: str
    size: tuple[int, int, int]
    profile: object
    limits: limits.Limits
    state: str = 'active'
    task: str | None = None
    locked: bool = False
    opted_out: bool = False
    pinned: bool = False
    port: bool = False
    zone: str | None = None
    moved: float | None = None          # seconds ago
    excluded: bool = False              # by the audit's scope
    seen_on: str | None = None          # where Watcher's model still has it
    age: float = 1000.0                 # seconds since it was requested, or found no host
    flavor: str = 'small'
    extra_specs: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Host:
    name: str
    zone: str
    total: tuple[int, int, int]
    ratio: float
    enabled: bool = True
    up: bool = True
    in_scope: bool = True
    hypervisor_type: str = 'QEMU'
    held: tuple[int, int, int] = (0, 0, 0)      # allocations that no VM here stands for

    @property
    def capacity(self):
        """Return what Placement lets be allocated: only vCPUs are overcommitted."""
        return int(self.total[0] * self.ratio), self.total[1], self.total[2]

    @property
    def node(self):
        return f'node-{self.name}'


@dataclasses.dataclass
class Group:
    name: str
    policy: str
    members: tuple[str, ...]
    most: int


@dataclasses.dataclass
class World:
    hosts: dict[str, Host]
    vms: dict[str, Vm]
    groups: list[Group]
    arriving: dict[str, str]            # by uuid of a VM in flight, its destination
    unplaced: list[Vm] = dataclasses.field(default_factory=list)      # found no host


def world(hosts, vms, size=(4, 8, 100)):
    """Return a cloud of hosts of one size, with fourfold overcommitment of vCPUs.

    :param hosts: a letter each
    """
    return World({name: Host(name, 'north', size, 4.0) for name in hosts},
                 {vm.uuid: vm for vm in vms}, [], {})


_SIZES = strategies.tuples(strategies.sampled_from((1, 1, 1, 2, 4)), strategies.integers(1, 2),
                           strategies.integers(0, 1))
_SLACK = strategies.tuples(*[strategies.integers(0, 3)] * 3)
_RARELY = strategies.integers(0, 24).map(lambda number: number == 24)


@strategies.composite
def worlds(draw):
    """Draw a cloud whose VMs fit where they are; its groups may be broken already."""
    hosts, vms = {}, {}
    names = [f'h{number}' for number in range(draw(strategies.integers(3, 7)))]
    for name in names:
        zone = draw(strategies.sampled_from(ZONES))
        here = [Vm(
            f'vm-{name}-{row}', name, draw(_SIZES), draw(synthetic.profiles(0.7)),
            draw(strategies.sampled_from((limits.NONE, limits.Limits(1.4),
                                          limits.Limits(2.5, 0.5), limits.BACKGROUND))),
            state=draw(strategies.sampled_from(('paused', 'resized'))) if draw(_RARELY)
            else 'active', task='rebooting' if draw(_RARELY) else None, locked=draw(_RARELY),
            opted_out=draw(_RARELY), pinned=draw(_RARELY), port=draw(_RARELY),
            zone=zone if draw(_RARELY) else None,
            moved=draw(strategies.sampled_from((60.0, 4000.0, 90000.0))) if draw(_RARELY)
            else None, excluded=draw(_RARELY),
            seen_on=draw(strategies.sampled_from(names)) if draw(_RARELY) else None)
            for row in range(draw(strategies.integers(0, 4)))]
        vms.update((vm.uuid, vm) for vm in here)
        # Little is left, so that one can often come only after another one has gone.
        ratio = draw(strategies.sampled_from((1.0, 2.0)))
        used = [sum(vm.size[kind] for vm in here) for kind in range(3)]
        vcpus, memory, disk = (one + slack for one, slack in zip(used, draw(_SLACK)))
        hosts[name] = Host(
            name, zone, (max(-int(-vcpus // ratio), 2, *(vm.size[0] for vm in here)),
                         max(memory, 1), max(disk, 1)), ratio,
            enabled=not draw(_RARELY), up=not draw(_RARELY), in_scope=not draw(_RARELY))
        if draw(_RARELY):
            hosts[name].held = tuple(min(1, max(most - one, 0)) for most, one in zip(
                hosts[name].capacity, used))
    arriving = {}
    for vm in vms.values():
        if vm.task is None and draw(_RARELY):
            destination = draw(strategies.sampled_from(sorted(hosts)))
            if destination != vm.host:
                vm.task, arriving[vm.uuid] = 'migrating', destination
    members = strategies.sampled_from(sorted(vms)) | strategies.just('unknown') if vms else (
        strategies.just('unknown'))
    groups = [Group(f'g{number}', policy, tuple(sorted(chosen)), most)
              for number, (policy, chosen, most) in enumerate(draw(strategies.lists(
                  strategies.tuples(strategies.sampled_from(POLICIES),
                                    strategies.sets(members, min_size=1, max_size=4),
                                    strategies.integers(1, 2)), max_size=3)))]
    # Nova puts a VM into one group at most.
    grouped: set[str] = set()
    for group in groups:
        group.members = tuple(uuid for uuid in group.members if uuid not in grouped)
        grouped |= set(group.members) - {'unknown'}
    world = World(hosts, vms, groups, arriving)
    _ground(world)
    return world


def _ground(world):
    """Take VMs in flight out where Placement would not have let them set out."""
    cloud = Cloud(world, fly=False)
    for uuid, destination in list(world.arriving.items()):
        try:
            cloud.claim(uuid, destination)
        except Refused:
            world.vms[uuid].task = None
            del world.arriving[uuid]


class Cloud:
    """Who is where and what is allocated, while migrations start and end.

    :param fly: whether VMs in flight before the audit hold what they need at their destinations
    """

    def __init__(self, world, fly=True):
        self.world = world
        self.where = {uuid: vm.host for uuid, vm in world.vms.items()}
        self.going: dict[str, str] = {}
        self.allocated = {name: list(host.held) for name, host in world.hosts.items()}
        for vm in world.vms.values():
            self._add(vm.host, vm.size)
        if fly:
            for uuid, destination in world.arriving.items():
                self.claim(uuid, destination)
        self.going.update(world.arriving if fly else {})

    def _add(self, host, size, sign=1):
        self.allocated[host] = [one + sign * need for one, need in zip(self.allocated[host], size)]

    def claim(self, uuid, destination):
        """Allocate at the destination, as Placement does: the source's is held as well."""
        self.allocate(uuid, self.world.vms[uuid].size, destination)

    def allocate(self, uuid, size, destination):
        """Allocate for a VM of some size, as Placement does."""
        host = self.world.hosts[destination]
        for kind, need, used, most, capacity in zip(
                RESOURCES, size, self.allocated[destination], host.total, host.capacity):
            if need > most:
                raise Refused(f'{uuid}: {need} {kind}, more than max_unit of {destination}')
            if need and used + need > capacity:
                raise Refused(f'{uuid}: {used} + {need} {kind} of {capacity} on {destination}')
        self._add(destination, size)

    def remove(self, uuid):
        """Delete a VM."""
        self._add(self.where.pop(uuid), self.world.vms[uuid].size, -1)

    def start(self, uuid, destination):
        """Begin a live migration; Nova's filters and the destination's own check let it pass."""
        vm, host = self.world.vms[uuid], self.world.hosts[destination]
        if self.where[uuid] == destination or uuid in self.going:
            raise Refused(f'{uuid} is there or on its way already')
        if not (host.enabled and host.up):
            raise Refused(f'{destination} takes no VMs')
        if vm.zone not in (None, host.zone):
            raise Refused(f'{uuid} is bound to zone {vm.zone}')
        for group in self.world.groups:
            if uuid in group.members:
                self._check(group, uuid, destination)
        self.claim(uuid, destination)
        self.going[uuid] = destination

    def _check(self, group, uuid, destination):
        others = [one for one in group.members if one in self.where and one != uuid]
        if group.policy == 'anti-affinity':
            # Who runs there and, as the destination's own check has it, who is on the way there.
            there = [one for one in others if destination in (self.where[one],
                                                              self.going.get(one))]
            if len(there) >= group.most:
                raise Refused(f'{uuid}: {group.name} has {there} on {destination} already')
        if group.policy == 'affinity' and others:
            hosts = {self.where[one] for one in others} | {
                self.going[one] for one in others if one in self.going}
            if hosts != {destination}:
                raise Refused(f'{uuid}: {group.name} is on {hosts}, not on {destination}')

    def end(self, uuid):
        """End a live migration."""
        self.move(uuid, self.going.pop(uuid), 0)

    def move(self, uuid, destination, claimed=1):
        """Have a VM at another host.

        :param claimed: 0 where it holds what it needs there already
        """
        self._add(self.where[uuid], self.world.vms[uuid].size, -1)
        self._add(destination, self.world.vms[uuid].size, claimed)
        self.where[uuid] = destination


def carry_out(world, moves, parents, chance: random.Random):
    """Carry a plan out in some order that its dependencies allow, as parallel as chance has it.

    :param moves: by uuid, source and destination
    :param parents: by uuid, whose migrations must have ended
    :returns: the hosts of all VMs after each end of a migration
    :raises Refused: at the first step that Nova or Placement would refuse
    """
    cloud = Cloud(world)
    waiting, running, done = sorted(moves), [], set()
    states = []
    while waiting or running:
        ready = [uuid for uuid in waiting if set(parents[uuid]) <= done]
        if ready and (not running or chance.random() < 0.6):
            uuid = chance.choice(ready)
            source, destination = moves[uuid]
            if cloud.where[uuid] != source:
                raise Refused(f'{uuid} is on {cloud.where[uuid]}, not on {source}')
            cloud.start(uuid, destination)
            waiting.remove(uuid)
            running.append(uuid)
        elif running:
            uuid = running.pop(chance.randrange(len(running)))
            cloud.end(uuid)
            done.add(uuid)
            states.append(dict(cloud.where))
        else:
            raise Refused(f'{waiting} wait for each other')
    return states


def state_of(world, where=None):
    """Return the placement state with the VMs at these hosts, as their profiles are."""
    where = {uuid: vm.host for uuid, vm in world.vms.items()} if where is None else where
    return cluster.build([
        cluster.Host(name, tuple(
            cluster.Resident(vm.uuid, [0.0] * 4 if vm.state == 'paused' else vm.profile, vm.limits,
                             vcpus=vm.size[0])
            for vm in world.vms.values() if where[vm.uuid] == name), synthetic.HOST_TYPE,
            cluster.LOCAL, NOW, CORES) for name in world.hosts], generated_at=NOW)


def watcher_model(world):
    """Return what Watcher's collector would have made of it."""
    model = model_root.ModelRoot()
    nodes = {}
    for host in world.hosts.values():
        if host.in_scope:
            nodes[host.name] = element.ComputeNode(
                uuid=host.node, hostname=host.name, state='up' if host.up else 'down',
                status='enabled' if host.enabled else 'disabled', disabled_reason=None,
                vcpus=host.total[0], memory=host.total[1], disk=host.total[2], vcpu_reserved=0,
                memory_mb_reserved=0, disk_gb_reserved=0, vcpu_ratio=host.ratio,
                memory_ratio=1.0, disk_ratio=1.0)
            model.add_node(nodes[host.name])
    for vm in world.vms.values():
        node = nodes.get(vm.seen_on or vm.host)
        if node is not None:
            instance = element.Instance(
                uuid=vm.uuid, name=vm.uuid, vcpus=vm.size[0], memory=vm.size[1], disk=vm.size[2],
                state=vm.state, watcher_exclude=vm.excluded)
            model.add_instance(instance)
            model.map_instance(instance, node)
    return model


class Services:
    """Nova's, Placement's and Neutron's answers, as they come over the wire."""

    def __init__(self, world):
        cloud = Cloud(world)
        left = {host.node: [most - used for most, used in zip(host.capacity,
                                                              cloud.allocated[host.name])]
                for host in world.hosts.values()}
        self._bodies = {
            '/servers/detail': {'servers': [
                _server(vm) for vm in (*world.vms.values(), *world.unplaced)]},
            '/os-server-groups': {'server_groups': [
                {'name': one.name, 'policy': one.policy, 'members': list(one.members),
                 'rules': {'max_server_per_host': one.most}
                 if one.policy == 'anti-affinity' else {}} for one in world.groups]},
            '/os-migrations': {'migrations': [_migration(vm, world) for vm in world.vms.values()
                                              if vm.moved is not None
                                              or vm.uuid in world.arriving]},
            '/os-services': {'services': [
                {'host': one.name, 'status': 'enabled' if one.enabled else 'disabled',
                 'state': 'up' if one.up else 'down', 'zone': one.zone}
                for one in world.hosts.values()]},
            '/os-hypervisors/detail': {'hypervisors': [
                {'hypervisor_hostname': f'{one.name}.example.org', 'service': {'host': one.name},
                 'hypervisor_type': one.hypervisor_type}
                for one in world.hosts.values()]},
            '/ports': {'ports': [{'device_id': vm.uuid, 'binding:vnic_type': 'direct'}
                                 for vm in world.vms.values() if vm.port]},
            '/allocation_candidates': {'provider_summaries': {
                host.node: {'resources': {
                    kind: {'capacity': most, 'used': used} for kind, most, used in zip(
                        RESOURCES, host.capacity, cloud.allocated[host.name])}}
                for host in world.hosts.values()}}}
        self._left = left
        self.compute = self.placement = self.network = self

    def get(self, path, params, microversion):
        response = requests.Response()
        response.status_code = 200
        response.headers['Content-Type'] = 'application/json'
        body = {'shares': []} if path.endswith('/shares') else self._bodies[path]
        if 'resources' in params:
            # Placement names the providers that have so much left.
            kind = RESOURCES.index(params['resources'].partition(':')[0])
            body = {name: {node: one for node, one in providers.items()
                           if self._left[node][kind] >= 1} for name, providers in body.items()}
        if params.get('offset'):
            body = {key: [] for key in body}
        response._content = json.dumps(body).encode()
        return response


def _server(vm):
    return {
        'id': vm.uuid, 'name': vm.uuid, 'tenant_id': 'project', 'locked': vm.locked,
        'OS-EXT-SRV-ATTR:host': vm.host, 'OS-EXT-STS:vm_state': vm.state,
        'OS-EXT-STS:task_state': vm.task,
        'metadata': {'tracon:exclude': 'yes'} if vm.opted_out else {},
        'flavor': {'extra_specs': {
            **({'hw:cpu_policy': 'dedicated'} if vm.pinned else {}),
            **({limits.CLASS: limits.BACKGROUND_CLASS} if vm.limits.background else {}),
            **vm.extra_specs},
            'original_name': vm.flavor, 'vcpus': vm.size[0], 'ram': vm.size[1],
            'disk': vm.size[2], 'ephemeral': 0, 'swap': 0},
        'image': {'id': 'image', 'properties': {}}, 'pinned_availability_zone': vm.zone,
        'created': _ago(vm.age),
        **({} if vm.host else {'fault': {
            'code': 500, 'created': _ago(vm.age), 'message':
            'No valid host was found. There are not enough hosts available.'}})}


def _ago(seconds, end='Z'):
    at = datetime.datetime.fromtimestamp(NOW - seconds, datetime.timezone.utc)
    return f'{at:%Y-%m-%dT%H:%M:%S}{end}'


def _migration(vm, world):
    text = _ago(vm.moved or 0.0, '.000000')
    going = world.arriving.get(vm.uuid)
    return {'instance_uuid': vm.uuid, 'updated_at': text, 'created_at': text,
            'status': 'completed' if going is None else 'running',
            'source_compute': vm.host if going else 'elsewhere',
            'dest_compute': going or vm.host}
